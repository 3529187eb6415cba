// Filters (`value | name`) and tests (`value is name`) that templates have.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "operations.h"

namespace lancet {

/// Throw JinjaError if there is none of the name; one of Jinja's that lancet lacks is told apart.
void check_filter_name(const std::string& name, int64_t line);
void check_test_name(const std::string& name, int64_t line);
bool has_filter(const std::string& name);
bool has_test(const std::string& name);

JinjaValue call_filter(JinjaRun& run, const std::string& name, const JinjaValue& value,
                       const JinjaArguments& arguments);
bool call_test(JinjaRun& run, const std::string& name, const JinjaValue& value, const JinjaArguments& arguments);

// Of the room alone: the filters by subject.

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
/// Of texts and of single values (text_filters.cpp).
const std::vector<JinjaFilterRow>& text_filters();
/// Of numbers (number_filters.cpp).
const std::vector<JinjaFilterRow>& number_filters();
/// Of lists (list_filters.cpp, choice_filters.cpp).
const std::vector<JinjaFilterRow>& list_filters();
const std::vector<JinjaFilterRow>& choice_filters();

/// What "a.b.0" finds in a value; nothing: the value itself.
using JinjaGetter = std::function<JinjaValue(const JinjaValue&)>;
JinjaGetter attribute_getter(JinjaRun& run, const JinjaValue& attribute);
/// As it is compared without regard to case: texts in lower case.
JinjaValue without_case(JinjaRun& run, const JinjaValue& value);

}  // namespace lancet
