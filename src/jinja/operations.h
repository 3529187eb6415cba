// What can be done with values: Python's operators and the functions that stand for them.
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

// All throw JinjaError where Python raises.

/// The type's name in Python: "str", "list".
std::string_view type_name(const JinjaValue& value);
/// As errors name it: "str object", "None".
std::string shown_type(const JinjaValue& value);

bool is_true(JinjaRun& run, const JinjaValue& value);
bool are_equal(JinjaRun& run, const JinjaValue& left, const JinjaValue& right);
/// Whether `left sign right` holds; sign: == != < <= > >= in, not in.
bool compare(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right);
bool contains_value(JinjaRun& run, const JinjaValue& container, const JinjaValue& item);
/// sign: + - * / // % **.
JinjaValue arithmetic(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right);
JinjaValue negative(JinjaRun& run, const JinjaValue& value);
JinjaValue positive(JinjaRun& run, const JinjaValue& value);

/// len().
int64_t length_of(JinjaRun& run, const JinjaValue& value);
/// Whether len() has an answer.
bool has_length(const JinjaValue& value);
bool is_iterable(const JinjaValue& value);
/// iter(): an iterator is itself, of others there is a new one.
JinjaIterator& iterate(JinjaRun& run, const JinjaValue& value);
/// list().
std::vector<JinjaValue> items_of(JinjaRun& run, const JinjaValue& value);
/// Characters of a text, each a text.
std::vector<JinjaValue> characters_as_values(JinjaRun& run, const std::string& text);

/// str().
std::string text_of(JinjaRun& run, const JinjaValue& value);
/// repr().
std::string repr_of(JinjaRun& run, const JinjaValue& value);

struct JsonForm {
  bool is_ascii = false;
  std::optional<std::string> indent = {};  ///< empty optional: all in one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sorts_keys = false;
};
/// json.dumps().
std::string json_of(JinjaRun& run, const JinjaValue& value, const JsonForm& form);

// Attributes and items (attributes.cpp).

/// value.name, as the sandbox has it.
JinjaValue attribute_of(JinjaRun& run, const JinjaValue& value, const std::string& name);
/// value[key].
JinjaValue item_of(JinjaRun& run, const JinjaValue& value, const JinjaValue& key);
/// The attribute itself, without a look at items; nullopt: there is none.
std::optional<JinjaValue> own_attribute(JinjaRun& run, const JinjaValue& value, const std::string& name);
/// value[start:stop:step]; each may be none.
JinjaValue slice_of(JinjaRun& run, const JinjaValue& value, const JinjaValue& start, const JinjaValue& stop,
                    const JinjaValue& step);
JinjaValue call_value(JinjaRun& run, const JinjaValue& function, JinjaArguments& arguments);

// Formatting (percent_format.cpp, brace_format.cpp).

/// text % values.
std::string format_percent(JinjaRun& run, const std::string& text, const JinjaValue& values);
/// text.format(...).
std::string format_braces(JinjaRun& run, const std::string& text, const JinjaArguments& arguments);

/// Escapes & < > ' " for HTML, as Markup has them.
std::string escaped_html(std::string_view text);

/// Where `part` begins in `text` at or after `from`, in linear time; npos: nowhere.
size_t find_part(JinjaRun& run, std::string_view text, std::string_view part, size_t from);

}  // namespace lancet
