// JSON for files from elsewhere. nlohmann alone keeps the last of two equal keys without a word and nests without
// limit.
#pragma once

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

/// Throws: JsonProblem for text that is not JSON, a key that stands twice in an object, or nesting deeper than
/// `max_depth`.
nlohmann::json parse_strict_json(std::string_view text, int max_depth);

/// Text of a file on one line of a message: control characters replaced, cut when long.
std::string printable(std::string_view text);

}  // namespace lancet
