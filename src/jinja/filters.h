// The filters (`value | name`) and tests (`value is name`) for templates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "operations.h"

namespace lancet {

/// Throw JinjaError if there is none with the name. The message differs for those of Jinja that lancet lacks.
void check_filter_name(const std::string& name, int64_t line);
void check_test_name(const std::string& name, int64_t line);
bool has_filter(const std::string& name);
bool has_test(const std::string& name);

JinjaValue call_filter(JinjaRun& run, const std::string& name, const JinjaValue& value,
                       const JinjaArguments& arguments);
bool call_test(JinjaRun& run, const std::string& name, const JinjaValue& value, const JinjaArguments& arguments);

// Only for this room: the filters by subject.

struct JinjaFilterCall {
  JinjaRun& run;
  std::string_view name;
  const JinjaValue& value;
  const JinjaArguments& given;
};
using JinjaFilter = JinjaValue (*)(const JinjaFilterCall&);
struct JinjaFilterRow {
  std::string_view name;
  JinjaFilter call;
};
/// Filters for texts and for single values (text_filters.cpp).
const std::vector<JinjaFilterRow>& text_filters();
/// Filters for numbers (number_filters.cpp).
const std::vector<JinjaFilterRow>& number_filters();
/// Filters for lists (list_filters.cpp, choice_filters.cpp).
const std::vector<JinjaFilterRow>& list_filters();
const std::vector<JinjaFilterRow>& choice_filters();

/// Finds "a.b.0" in a value; with an empty path returns the value itself.
using JinjaGetter = std::function<JinjaValue(const JinjaValue&)>;
JinjaGetter attribute_getter(JinjaRun& run, const JinjaValue& attribute);
/// Returns the value for comparisons without regard to case: texts in lower case.
JinjaValue without_case(JinjaRun& run, const JinjaValue& value);

}  // namespace lancet
