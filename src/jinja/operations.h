// Operations on values: Python's operators, and functions that do the same.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run.h"
#include "values.h"

namespace lancet {

// All throw JinjaError where Python raises an exception.

/// Returns the type's name in Python: "str", "list".
std::string_view type_name(const JinjaValue& value);
/// Returns the type as errors name it: "str object", "None".
std::string shown_type(const JinjaValue& value);

bool is_true(JinjaRun& run, const JinjaValue& value);
bool are_equal(JinjaRun& run, const JinjaValue& left, const JinjaValue& right);
/// Whether `left sign right` is true. sign: == != < <= > >= in, not in.
bool compare(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right);
bool contains_value(JinjaRun& run, const JinjaValue& container, const JinjaValue& item);
/// `sign`: + - * / // % **.
JinjaValue arithmetic(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right);
JinjaValue negative(JinjaRun& run, const JinjaValue& value);
JinjaValue positive(JinjaRun& run, const JinjaValue& value);

/// Computes len().
int64_t length_of(JinjaRun& run, const JinjaValue& value);
/// Whether len() is defined for the value.
bool has_length(const JinjaValue& value);
bool is_iterable(const JinjaValue& value);
/// Computes iter(): an iterator returns itself, other values a new iterator.
JinjaIterator& iterate(JinjaRun& run, const JinjaValue& value);
/// Computes list().
std::vector<JinjaValue> items_of(JinjaRun& run, const JinjaValue& value);
/// Returns the characters of a text, each as a text.
std::vector<JinjaValue> characters_as_values(JinjaRun& run, const std::string& text);

/// Computes str().
std::string text_of(JinjaRun& run, const JinjaValue& value);
/// Computes repr().
std::string repr_of(JinjaRun& run, const JinjaValue& value);

struct JsonForm {
  bool is_ascii = false;
  std::optional<std::string> indent = {};  ///< nullopt: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sorts_keys = false;
};
/// Computes json.dumps().
std::string json_of(JinjaRun& run, const JinjaValue& value, const JsonForm& form);

// Attributes and items (attributes.cpp).

/// Returns value.name as in the sandbox.
JinjaValue attribute_of(JinjaRun& run, const JinjaValue& value, const std::string& name);
/// Returns value[key].
JinjaValue item_of(JinjaRun& run, const JinjaValue& value, const JinjaValue& key);
/// Returns the attribute itself, without looking for items; nullopt if there is none.
std::optional<JinjaValue> own_attribute(JinjaRun& run, const JinjaValue& value, const std::string& name);
/// Returns value[start:stop:step]; each may be none.
JinjaValue slice_of(JinjaRun& run, const JinjaValue& value, const JinjaValue& start, const JinjaValue& stop,
                    const JinjaValue& step);
JinjaValue call_value(JinjaRun& run, const JinjaValue& function, JinjaArguments& arguments);

// Formatting (percent_format.cpp, brace_format.cpp).

/// Computes text % values.
std::string format_percent(JinjaRun& run, const std::string& text, const JinjaValue& values);
/// Computes text.format(...).
std::string format_braces(JinjaRun& run, const std::string& text, const JinjaArguments& arguments);

/// Escapes & < > ' " for HTML, as Markup does.
std::string escaped_html(std::string_view text);

/// Returns where `part` begins in `text` at or after `from`, in linear time; npos if it does not occur.
size_t find_part(JinjaRun& run, std::string_view text, std::string_view part, size_t from);

}  // namespace lancet
