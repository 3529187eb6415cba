// Parses JSON files of others. nlohmann alone silently keeps the last of two equal keys and has no limit on nesting.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lancet {

/// Describes what is wrong with the text. Callers add the place and throw their own kind of error.
class JsonProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The nesting depth allowed for files that hold lists of objects of plain values, with a wide margin.
inline constexpr int kUsualJsonDepth = 64;

/// Parses JSON. Throws: JsonProblem "not valid JSON: ..." for text that is not JSON; for a key that appears twice in an
/// object; for nesting deeper than `max_depth`.
nlohmann::json parse_strict_json(std::string_view text, int max_depth = kUsualJsonDepth);
/// Parses as parse_strict_json() does, but keeps the keys in the order of the text. Also for an object of more than
/// 65,536 keys.
nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth = kUsualJsonDepth);

/// Parse as the functions above do, but require an object. Throw: JsonProblem "another kind of value" too.
nlohmann::json parse_json_object(std::string_view text);
nlohmann::ordered_json parse_ordered_object(std::string_view text);

/// Gets a repeated key, and the index of the outermost list's element that contains it.
using OnRepeatedKey = std::function<void(const std::string& key, int64_t element)>;
/// Parses as parse_ordered_json() above does, but reports a key that appears twice in an object and keeps its last
/// value.
nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth, const OnRepeatedKey& on_repeated);

/// Returns "the key 'prompt' stands twice in one object".
std::string repeated_key_text(std::string_view key);

/// Returns nlohmann's message without its tag, on one line: "not valid JSON: parse error at line 3, column 5: ...".
std::string invalid_json_text(std::string_view words);

/// Returns a file's text on one line for a message: control characters are replaced, and a long text is cut.
std::string printable(std::string_view text);

// Numbers of a config.json that JSON cannot express. Python's json writes and reads them bare; transformers, since
// version 5, writes them as objects.

/// Returns JSON in which each bare Infinity, -Infinity and NaN is written as {"__float__": "Infinity"}, so that strict
/// parsers accept it. Text without such numbers stays as it is, also if it is not JSON.
std::string bare_floats_as_objects(std::string_view json);

/// Reverses it: writes each {"__float__": "Infinity"} bare, in JSON of any layout.
std::string objects_as_bare_floats(std::string_view json);

}  // namespace lancet
