#include "entry_schema.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Of whole numbers: none that would be cut to one, and none beyond 63 bits.
enum class EntryType { kText, kWhole, kCount, kNumber, kFlagOrNull, kMapOrNull, kMap, kPair };

/// A value by its place: "edits[].lookup" is one of each element of a list, "before{}" each value of a map.
struct EntryField {
  std::string_view kind;
  std::string_view place;
  EntryType type;
};

constexpr EntryField kEntryFields[] = {
    {entry_kind::kBase, "format", EntryType::kText},
    {entry_kind::kBase, "weights", EntryType::kText},
    {entry_kind::kBase, "config", EntryType::kText},
    {entry_kind::kBase, "tokenizer", EntryType::kText},
    {entry_kind::kBase, "folder", EntryType::kText},
    {entry_kind::kSetting, "method", EntryType::kText},
    {entry_kind::kSetting, "editor", EntryType::kText},
    {entry_kind::kSetting, "job", EntryType::kText},
    {entry_kind::kSetting, "contexts[]", EntryType::kText},
    {entry_kind::kSetting, "statistics", EntryType::kText},
    {entry_kind::kSetting, "dtype", EntryType::kText},
    {entry_kind::kSetting, "version", EntryType::kText},
    {entry_kind::kBatch, "setting", EntryType::kCount},
    {entry_kind::kBatch, "when", EntryType::kText},
    {entry_kind::kBatch, "edits[].request", EntryType::kMap},
    {entry_kind::kBatch, "edits[].request.id", EntryType::kText},
    {entry_kind::kBatch, "edits[].prompt_ids[]", EntryType::kCount},
    {entry_kind::kBatch, "edits[].target_ids[]", EntryType::kCount},
    {entry_kind::kBatch, "edits[].lookup", EntryType::kWhole},
    {entry_kind::kBatch, "columns[]", EntryType::kCount},
    {entry_kind::kBatch, "changes", EntryType::kText},
    {entry_kind::kBatch, "solved", EntryType::kText},
    {entry_kind::kBatch, "weights[]", EntryType::kPair},
    {entry_kind::kBatch, "report", EntryType::kMapOrNull},
    {entry_kind::kFinish, "changes", EntryType::kText},
    {entry_kind::kMeasure, "on", EntryType::kText},
    {entry_kind::kMeasure, "weights[]", EntryType::kPair},
    {entry_kind::kMeasure, "edits[].id", EntryType::kText},
    {entry_kind::kMeasure, "edits[].when", EntryType::kText},
    {entry_kind::kMeasure, "edits[].before{}", EntryType::kNumber},
    {entry_kind::kMeasure, "edits[].after{}", EntryType::kNumber},
    {entry_kind::kMeasure, "edits[].took", EntryType::kFlagOrNull},
    {entry_kind::kMeasure, "edits[].why", EntryType::kText},
    {entry_kind::kUndo, "when", EntryType::kText},
    {entry_kind::kUndo, "mode", EntryType::kText},
    {entry_kind::kUndo, "keeps", EntryType::kCount},
    {entry_kind::kUndo, "edits[]", EntryType::kText},
    {entry_kind::kUndo, "gives_up", EntryType::kText},
};

[[noreturn]] void refuse_entry(std::string_view place, const char* expected, const EntryJson* got) {
  const std::string shown = got == nullptr ? "nothing" : got->dump(-1, ' ', false, EntryJson::error_handler_t::replace);
  throw ConfigError(cat(place, ": expected ", expected, ", got ", printable(shown)));
}

bool is_whole(const EntryJson& value) {
  return value.is_number_integer() &&
         !(value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max());
}

bool is_pair_of_texts(const EntryJson& value) {
  return value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string();
}

void check_entry_value(std::string_view place, EntryType type, const EntryJson& value) {
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds) refuse_entry(place, expected, &value);
  };
  switch (type) {
    case EntryType::kText:
      return expect(value.is_string(), "text");
    case EntryType::kWhole:
      return expect(is_whole(value), "a whole number");
    case EntryType::kCount:
      return expect(is_whole(value) && value.get<int64_t>() >= 0, "a whole number from 0 on");
    case EntryType::kNumber:
      return expect(value.is_number() && std::isfinite(value.get<double>()), "a number");
    case EntryType::kFlagOrNull:
      return expect(value.is_null() || value.is_boolean(), "true, false or null");
    case EntryType::kMapOrNull:
      return expect(value.is_null() || value.is_object(), "a map or null");
    case EntryType::kMap:
      return expect(value.is_object(), "a map");
    case EntryType::kPair:
      return expect(is_pair_of_texts(value), "two texts");
  }
}

/// `rest`: what is left of field.place, from its next name or brackets on.
void check_entry_place(const EntryField& field, std::string_view rest, const EntryJson& value) {
  if (rest.empty()) return check_entry_value(field.place, field.type, value);
  if (rest.starts_with("[]") || rest.starts_with("{}")) {
    const bool is_list = rest.starts_with("[]");
    if (is_list ? !value.is_array() : !value.is_object())
      refuse_entry(field.place, is_list ? "a list" : "a map", &value);
    for (const EntryJson& element : value) check_entry_place(field, rest.substr(2), element);
    return;
  }
  if (rest.starts_with('.')) rest.remove_prefix(1);
  const std::string_view name = rest.substr(0, rest.find_first_of(".[{"));
  if (!value.is_object()) refuse_entry(field.place, "a map", &value);
  const auto found = value.find(std::string(name));
  if (found == value.end()) refuse_entry(field.place, "a value", nullptr);
  check_entry_place(field, rest.substr(name.size()), *found);
}

}  // namespace

void check_entry(const EntryJson& entry) {
  if (!entry.is_object()) refuse_entry("entry", "a map", &entry);
  const auto kind = entry.find("kind");
  if (kind == entry.end() || !kind->is_string()) refuse_entry("kind", "text", kind == entry.end() ? nullptr : &*kind);
  for (const EntryField& field : kEntryFields)
    if (kind->get_ref<const std::string&>() == field.kind) check_entry_place(field, field.place, entry);
}

}  // namespace lancet
