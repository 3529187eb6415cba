#include "strict_json.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// "[json.exception.parse_error.101] parse error at ..." without its tag.
std::string without_tag(std::string_view message) {
  const size_t end = message.find("] ");
  return printable(end == std::string_view::npos ? message : message.substr(end + 2));
}

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, int max_depth) {
  using Json = nlohmann::json;
  std::vector<std::unordered_set<std::string>> keys_of_open_objects;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_of_open_objects.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= max_depth) throw JsonProblem(cat("nested deeper than ", max_depth, " levels"));
        break;
      case Json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_of_open_objects.back().insert(key).second)
          throw JsonProblem(cat("the key '", printable(key), "' stands twice in one object"));
        break;
      }
      case Json::parse_event_t::object_end:
        keys_of_open_objects.pop_back();
        break;
      default:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const Json::exception& error) {
    throw JsonProblem(cat("not valid JSON: ", without_tag(error.what())));
  }
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
