// JSON of files from elsewhere. nlohmann alone keeps the last of two equal keys without a word and nests without limit.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
/// The same with keys in the order of the text. Takes time by the square of an object's keys: not for large ones.
nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth = kUsualJsonDepth);

/// "the key 'prompt' stands twice in one object".
std::string repeated_key_text(std::string_view key);

/// nlohmann's words without their tag, on one line: "not valid JSON: parse error at line 3, column 5: ...".
std::string invalid_json_text(std::string_view words);

/// Sees what a parser reads: for kinds of JSON and ways with repeated keys that parse_strict_json() has not.
class JsonWatch {
 public:
  /// A key, and the number of the outermost list's element that it lies in.
  using OnRepeated = std::function<void(const std::string& key, int64_t element)>;

  JsonWatch(int max_depth, OnRepeated on_repeated) : max_depth_(max_depth), on_repeated_(std::move(on_repeated)) {}

  /// nlohmann's callback. Throws: JsonProblem for nesting deeper than `max_depth`.
  template <typename Json>
  bool operator()(int depth, nlohmann::detail::parse_event_t event, Json& parsed) {
    using Event = nlohmann::detail::parse_event_t;
    if (event == Event::key) open_.back().push_back(parsed.template get_ref<const std::string&>());
    if (event == Event::object_end) close_object(parsed.size());
    see(depth, event);
    return true;
  }

 private:
  void see(int depth, nlohmann::detail::parse_event_t event);
  /// `n_distinct`: keys that the parser kept. A tokenizer's object has 150,000: they are looked at one by one only
  /// where one was lost.
  void close_object(size_t n_distinct);

  int max_depth_;
  OnRepeated on_repeated_;
  std::vector<std::vector<std::string>> open_;  ///< the keys of objects that are being read
  int64_t element_ = 0;
};

/// Text of a file on one line of a message: control characters replaced, cut when long.
std::string printable(std::string_view text);

}  // namespace lancet
