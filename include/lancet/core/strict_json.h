// JSON of files from elsewhere. nlohmann alone keeps the last of two equal keys without a word and nests without limit.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lancet {

/// What is wrong with the text; callers add the place and throw their own kind.
class JsonProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How deep a file may nest that holds lists of objects of plain values, with room for what nobody foresaw.
inline constexpr int kUsualJsonDepth = 64;

/// Throws: JsonProblem "not valid JSON: ..." for text that is not JSON; for a key that stands twice in an object; for
/// nesting deeper than `max_depth`.
nlohmann::json parse_strict_json(std::string_view text, int max_depth = kUsualJsonDepth);
/// Parses likewise, but with keys in the order of the text; also for an object of more than 65,536 keys.
nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth = kUsualJsonDepth);

/// Parse likewise what is an object. Throw: JsonProblem "another kind of value" too.
nlohmann::json parse_json_object(std::string_view text);
nlohmann::ordered_json parse_ordered_object(std::string_view text);

/// A key, and the number of the outermost list's element that it lies in.
using OnRepeatedKey = std::function<void(const std::string& key, int64_t element)>;
/// Parses likewise, but tells of a key that stands twice in an object; its last value is kept.
nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth, const OnRepeatedKey& on_repeated);

/// "the key 'prompt' stands twice in one object".
std::string repeated_key_text(std::string_view key);

/// nlohmann's words without their tag, on one line: "not valid JSON: parse error at line 3, column 5: ...".
std::string invalid_json_text(std::string_view words);

/// Text of a file on one line of a message: control characters replaced, cut when long.
std::string printable(std::string_view text);

// The numbers that JSON cannot say, in a config.json: Python's json writes and reads them bare, transformers since its
// version 5 as objects.

/// JSON with each bare Infinity, -Infinity and NaN as {"__float__": "Infinity"}, so that strict readers take it. Text
/// without any, also what is no JSON, stays as it is.
std::string bare_floats_as_objects(std::string_view json);

/// The way back: each {"__float__": "Infinity"} bare, in JSON of whatever layout.
std::string objects_as_bare_floats(std::string_view json);

}  // namespace lancet
