#include "scheme_keys.h"

#include <algorithm>
#include <cctype>

#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Larger groups do not occur in any model's matrices.
constexpr int64_t kLongestGroup = int64_t{1} << 24;

bool says_nothing(const OrderedJson& value) {
  return value.is_null() || value == OrderedJson(false) || (value.is_structured() && value.empty());
}

bool is_count(const OrderedJson& value) {
  return value.is_number_integer() && value.get<int64_t>() > 0 && value.get<int64_t>() <= kLongestGroup;
}

}  // namespace

std::string json_text(const OrderedJson& value) {
  return printable(value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

SchemeKeys::SchemeKeys(const OrderedJson& object, std::string prefix, SchemeProblems& problems)
    : object_(object), prefix_(std::move(prefix)), problems_(problems) {}

const OrderedJson* SchemeKeys::find(std::string_view key) {
  asked_.emplace(key);
  const auto at = object_.find(std::string(key));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool SchemeKeys::flag(std::string_view key, bool fallback) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) problem(key, "true or false");
  return value->is_boolean() ? value->get<bool>() : fallback;
}

int64_t SchemeKeys::whole(std::string_view key, int64_t fallback) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number_integer()) problem(key, "a whole number");
  return value->is_number_integer() ? value->get<int64_t>() : fallback;
}

std::string SchemeKeys::text(std::string_view key, std::string_view fallback) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) problem(key, "a text");
  return value->is_string() ? value->get<std::string>() : std::string(fallback);
}

std::vector<std::string> SchemeKeys::texts(std::string_view key) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return {};
  const bool fits = value->is_array() &&
                    std::all_of(value->begin(), value->end(), [](const OrderedJson& item) { return item.is_string(); });
  if (!fits) problem(key, "a list of texts");
  return fits ? value->get<std::vector<std::string>>() : std::vector<std::string>{};
}

std::string SchemeKeys::one_of(std::string_view key, std::string_view fallback,
                               std::initializer_list<std::string_view> known) {
  const std::string value = lowered(text(key, fallback));
  if (std::find(known.begin(), known.end(), value) != known.end()) return value;
  const std::vector<std::string> names(known.begin(), known.end());
  problem(key, cat(join(names, " or "), ", which is what this version reads"));
  return std::string(fallback);
}

int64_t SchemeKeys::group_size(std::string_view key, int64_t fallback) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return fallback;
  if (*value == OrderedJson(-1)) return 0;
  if (!is_count(*value)) problem(key, "a number of columns above 0, or -1 for whole rows");
  return is_count(*value) ? value->get<int64_t>() : fallback;
}

std::optional<ScaleBlock> SchemeKeys::block(std::string_view key) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_array() && value->size() == 2 && is_count((*value)[0]) && is_count((*value)[1]))
    return ScaleBlock{(*value)[0].get<int64_t>(), (*value)[1].get<int64_t>()};
  problem(key, "a list of two whole numbers above 0: rows and columns");
  return std::nullopt;
}

void SchemeKeys::harmless(std::span<const std::string_view> keys) { asked_.insert(keys.begin(), keys.end()); }

void SchemeKeys::problem(std::string_view key, std::string_view expected) {
  const OrderedJson* value = find(key);
  refuse(key, cat("expected ", expected, ", got ", value == nullptr ? "nothing" : json_text(*value)));
}

void SchemeKeys::refuse(std::string_view key, std::string_view why) {
  problems_.found.push_back(cat(prefix_, printable(key), ": ", why));
}

void SchemeKeys::finish() {
  for (const auto& [key, value] : object_.items()) {
    if (says_nothing(value) || asked_.contains(key)) continue;
    const auto& ignored = problems_.ignored_keys;
    if (std::find(ignored.begin(), ignored.end(), key) != ignored.end()) continue;
    refuse(key, "unknown setting: if it does not change what the stored numbers mean, name it in ignore_config_keys");
  }
}

}  // namespace lancet
