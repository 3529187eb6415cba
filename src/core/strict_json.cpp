#include "lancet/core/strict_json.h"

#include <algorithm>
#include <unordered_set>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

template <typename Json>
Json parse_watched(std::string_view text, int max_depth) {
  JsonWatch watch(max_depth, [](const std::string& key, int64_t) { throw JsonProblem(repeated_key_text(key)); });
  try {
    return Json::parse(text.begin(), text.end(), std::ref(watch));
  } catch (const nlohmann::json::exception& error) {
    throw JsonProblem(invalid_json_text(error.what()));
  }
}

}  // namespace

std::string repeated_key_text(std::string_view key) {
  return cat("the key '", printable(excerpt(key, 60)), "' stands twice in one object");
}

std::string invalid_json_text(std::string_view words) {
  // "[json.exception.parse_error.101] parse error at ..."; it may go on with the whole text
  const size_t end = words.find("] ");
  return "not valid JSON: " + printable(end == std::string_view::npos ? words : words.substr(end + 2));
}

void JsonWatch::see(int depth, nlohmann::detail::parse_event_t event) {
  using Event = nlohmann::detail::parse_event_t;
  if ((event == Event::object_start || event == Event::array_start) && depth >= max_depth_)
    throw JsonProblem(cat("nested deeper than ", max_depth_, " levels"));
  if (event == Event::object_start) open_.emplace_back();
  if (depth == 1 && (event == Event::object_end || event == Event::array_end || event == Event::value)) ++element_;
}

void JsonWatch::close_object(size_t n_distinct) {
  const std::vector<std::string> keys = std::move(open_.back());
  open_.pop_back();
  if (keys.size() == n_distinct) return;
  std::unordered_set<std::string_view> known;
  for (const std::string& key : keys)
    if (!known.insert(key).second) on_repeated_(key, element_);
}

nlohmann::json parse_strict_json(std::string_view text, int max_depth) {
  return parse_watched<nlohmann::json>(text, max_depth);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth) {
  return parse_watched<nlohmann::ordered_json>(text, max_depth);
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  size_t length = std::min(text.size(), kLongest);
  // Never in the middle of a UTF-8 character: messages also go into JSON.
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  std::string out(text.substr(0, length));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  if (length < text.size()) out += "...";
  return out;
}

}  // namespace lancet
