#include "lancet/core/strict_json.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// The largest number of keys in an object that keeps their order, because each search goes through all of them. The
/// class labels of a config.json, some 20,000, are the most in any known file.
constexpr size_t kMostOrderedKeys = 65'536;
/// From this number of keys on, the keys of an object are found by hash while it is read.
constexpr size_t kFewKeys = 32;

/// Builds the document from the parser's events. nlohmann's parser with a callback is not used, because it looks
/// through all elements of a list or an object again whenever one of them ends.
template <typename Json>
class StrictReader : public nlohmann::json_sax<Json> {
 public:
  StrictReader(int max_depth, const OnRepeatedKey& on_repeated) : max_depth_(max_depth), on_repeated_(on_repeated) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(typename Json::number_integer_t value) override { return put(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) override { return put(value); }
  bool number_float(typename Json::number_float_t value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(typename Json::binary_t& value) override { return put(std::move(value)); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      member_ = ordered_member(name);
    } else {
      const auto [at, is_new] = open_.back()->emplace(name, nullptr);
      if (!is_new) on_repeated_(name, element_);
      member_ = &*at;
    }
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw JsonProblem(invalid_json_text(error.what()));
  }

  Json document() { return std::move(document_); }

 private:
  /// Stores the value in the next place.
  template <typename Value>
  Json& place(Value&& value) {
    if (open_.empty()) return document_ = std::forward<Value>(value);
    if (open_.back()->is_object()) return *member_ = std::forward<Value>(value);
    return open_.back()->emplace_back(std::forward<Value>(value));
  }

  template <typename Value>
  bool put(Value&& value) {
    place(std::forward<Value>(value));
    count_element();
    return true;
  }

  bool open(Json&& empty) {
    if (std::ssize(open_) >= max_depth_) throw JsonProblem(cat("nested deeper than ", max_depth_, " levels"));
    open_.push_back(&place(std::move(empty)));
    places_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    places_.pop_back();
    count_element();
    return true;
  }

  void count_element() {
    if (open_.size() == 1) ++element_;
  }

  /// ordered_json's own search goes through all keys, so reading would take time proportional to the square of their
  /// number.
  Json* ordered_member(const std::string& name) {
    auto& members = open_.back()->template get_ref<typename Json::object_t&>();
    std::unordered_map<std::string, size_t>& places = places_.back();
    if (members.size() == kFewKeys && places.empty())
      for (const auto& [key, value] : members) places.emplace(key, places.size());
    const size_t place = place_of(name, members, places);
    if (place < members.size()) {
      on_repeated_(name, element_);
      return &(members.begin() + static_cast<int64_t>(place))->second;
    }
    if (members.size() >= kMostOrderedKeys)
      throw JsonProblem(cat("an object of more than ", kMostOrderedKeys, " keys"));
    if (members.size() >= kFewKeys) places.emplace(name, place);
    members.emplace_back(name, nullptr);
    return &members.back().second;
  }

  /// Returns members.size() if there is no such key yet.
  template <typename Members>
  static size_t place_of(const std::string& name, const Members& members,
                         const std::unordered_map<std::string, size_t>& places) {
    if (members.size() < kFewKeys)
      return static_cast<size_t>(std::ranges::find(members, name, &Members::value_type::first) - members.begin());
    const auto found = places.find(name);
    return found == places.end() ? members.size() : found->second;
  }

  int max_depth_;
  const OnRepeatedKey& on_repeated_;
  Json document_;
  std::vector<Json*> open_;  ///< lists and objects that are being read; each keeps its address until it ends
  /// For each of open_, the places of its keys if it is an ordered object with many keys.
  std::vector<std::unordered_map<std::string, size_t>> places_;
  Json* member_ = nullptr;  ///< the value of the last key of the innermost object
  int64_t element_ = 0;     ///< index in the outermost list
};

template <typename Json>
Json parse_with(std::string_view text, int max_depth, const OnRepeatedKey& on_repeated) {
  StrictReader<Json> reader(max_depth, on_repeated);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.document();
}

void refuse_repeated(const std::string& key, int64_t) { throw JsonProblem(repeated_key_text(key)); }

template <typename Json>
Json only_object(Json json) {
  if (!json.is_object()) throw JsonProblem("another kind of value");
  return json;
}

}  // namespace

std::string repeated_key_text(std::string_view key) {
  return cat("the key '", printable(excerpt(key, 60)), "' stands twice in one object");
}

std::string invalid_json_text(std::string_view words) {
  // for example "[json.exception.parse_error.101] parse error at ...", which can be followed by the whole text
  const size_t end = words.find("] ");
  return "not valid JSON: " + printable(end == std::string_view::npos ? words : words.substr(end + 2));
}

nlohmann::json parse_strict_json(std::string_view text, int max_depth) {
  return parse_with<nlohmann::json>(text, max_depth, refuse_repeated);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth) {
  return parse_with<nlohmann::ordered_json>(text, max_depth, refuse_repeated);
}

nlohmann::json parse_json_object(std::string_view text) { return only_object(parse_strict_json(text)); }

nlohmann::ordered_json parse_ordered_object(std::string_view text) { return only_object(parse_ordered_json(text)); }

nlohmann::ordered_json parse_ordered_json(std::string_view text, int max_depth, const OnRepeatedKey& on_repeated) {
  return parse_with<nlohmann::ordered_json>(text, max_depth, on_repeated);
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  size_t length = std::min(text.size(), kLongest);
  // never inside a UTF-8 character, because messages also go into JSON
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  std::string out(text.substr(0, length));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  if (length < text.size()) out += "...";
  return out;
}

namespace {

constexpr std::string_view kBareFloats[] = {"Infinity", "-Infinity", "NaN"};

/// Returns the length of the string at the beginning of `text`, with both quotes. A string without an end is as long as
/// the text.
size_t string_length(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

bool take_token(std::string_view& text, std::string_view token) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return take(text, token);
}

/// Removes the bare float at the beginning of `text`, and returns it as an object.
std::optional<std::string> take_bare(std::string_view& text) {
  for (const std::string_view name : kBareFloats)
    if (take(text, name)) return cat("{\"__float__\": \"", name, "\"}");
  return std::nullopt;
}

/// Removes the object of a float at the beginning of `text`, and returns the bare float.
std::optional<std::string> take_object(std::string_view& text) {
  for (const std::string_view name : kBareFloats) {
    std::string_view rest = text;
    if (!take(rest, "{") || !take_token(rest, "\"__float__\"") || !take_token(rest, ":") ||
        !take_token(rest, cat('"', name, '"')) || !take_token(rest, "}"))
      continue;
    text = rest;
    return std::string(name);
  }
  return std::nullopt;
}

/// Replaces what `replacement` accepts, outside of strings.
template <typename Take>
std::string replaced(std::string_view text, const Take& replacement) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const std::optional<std::string> other = replacement(text)) {
      out += *other;
      continue;
    }
    const size_t length = text.front() == '"' ? string_length(text) : 1;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string bare_floats_as_objects(std::string_view json) { return replaced(json, take_bare); }

std::string objects_as_bare_floats(std::string_view json) { return replaced(json, take_object); }

}  // namespace lancet
