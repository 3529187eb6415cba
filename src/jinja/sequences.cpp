// The items of values.
#include <algorithm>

#include "characters.h"
#include "lancet/core/strings.h"
#include "loops.h"
#include "operations.h"

namespace lancet {
namespace {

JinjaValue range_item(const JinjaRange& range, int64_t i) { return JinjaValue::of(range.start + i * range.step); }

JinjaValue view_item(JinjaRun& run, const JinjaView& view, const JinjaDict::Entry& entry) {
  if (view.part == JinjaView::Part::kKeys) return entry.key;
  return view.part == JinjaView::Part::kValues ? entry.value : run.tuple({entry.key, entry.value});
}

}  // namespace

bool has_length(const JinjaValue& value) {
  switch (value.kind()) {
    case JinjaKind::kUndefined:
    case JinjaKind::kText:
    case JinjaKind::kList:
    case JinjaKind::kTuple:
    case JinjaKind::kDict:
    case JinjaKind::kRange:
    case JinjaKind::kView:
    case JinjaKind::kLoop:
      return true;
    default:
      return false;
  }
}

int64_t length_of(JinjaRun& run, const JinjaValue& value) {
  switch (value.kind()) {
    case JinjaKind::kUndefined:
      return 0;
    case JinjaKind::kText:
      run.charge_bytes(value.text().size());
      return static_cast<int64_t>(count_characters(value.text()));
    case JinjaKind::kList:
    case JinjaKind::kTuple:
      return static_cast<int64_t>(value.items().size());
    case JinjaKind::kDict:
      return static_cast<int64_t>(value.dict().entries.size());
    case JinjaKind::kRange:
      return value.range().length;
    case JinjaKind::kView:
      return static_cast<int64_t>(value.view().dict->entries.size());
    case JinjaKind::kLoop:
      return loop_length(run, value.loop());
    default:
      run.fail(cat(shown_type(value), " has no length"));
  }
}

bool is_iterable(const JinjaValue& value) {
  return has_length(value) || value.is(JinjaKind::kIterator);  // here, everything with a length can be iterated
}

std::vector<JinjaValue> characters_as_values(JinjaRun& run, const std::string& text) {
  std::vector<JinjaValue> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t end = after_characters(text, at, 1);
    characters.push_back(run.text(text.substr(at, end - at)));
    at = end;
  }
  return characters;
}

JinjaIterator& iterate(JinjaRun& run, const JinjaValue& value) {
  if (value.is(JinjaKind::kIterator)) return value.iterator();
  if (!is_iterable(value)) run.fail(cat("expected a list, got ", shown_type(value), ", which has no items"));
  JinjaIterator& made = run.make<JinjaIterator>();
  size_t at = 0;
  switch (value.kind()) {
    case JinjaKind::kText:
      made.next = [&run, value, at]() mutable -> std::optional<JinjaValue> {
        const std::string& text = value.text();
        if (at >= text.size()) return std::nullopt;
        const size_t begin = std::exchange(at, after_characters(text, at, 1));
        return run.text(text.substr(begin, at - begin));
      };
      break;
    case JinjaKind::kRange:
      made.next = [value, at]() mutable -> std::optional<JinjaValue> {
        if (static_cast<int64_t>(at) >= value.range().length) return std::nullopt;
        return range_item(value.range(), static_cast<int64_t>(at++));
      };
      break;
    case JinjaKind::kDict:
      made.next = [value, at]() mutable -> std::optional<JinjaValue> {
        if (at >= value.dict().entries.size()) return std::nullopt;
        return value.dict().entries[at++].key;
      };
      break;
    case JinjaKind::kView:
      made.next = [&run, value, at]() mutable -> std::optional<JinjaValue> {
        const JinjaView& view = value.view();
        if (at >= view.dict->entries.size()) return std::nullopt;
        return view_item(run, view, view.dict->entries[at++]);
      };
      break;
    case JinjaKind::kLoop:
      run.fail("lancet does not go through `loop` itself");
    case JinjaKind::kUndefined:
      made.next = [] { return std::optional<JinjaValue>(); };
      break;
    default:
      made.next = [value, at]() mutable -> std::optional<JinjaValue> {
        if (at >= value.items().size()) return std::nullopt;
        return value.items()[at++];
      };
  }
  return made;
}

std::vector<JinjaValue> items_of(JinjaRun& run, const JinjaValue& value) {
  if (value.is_sequence()) return value.items();
  JinjaIterator& iterator = iterate(run, value);
  std::vector<JinjaValue> items;
  while (std::optional<JinjaValue> item = iterator.next()) {
    run.charge(1);
    run.charge_memory(sizeof(JinjaValue));
    items.push_back(*item);
  }
  return items;
}

}  // namespace lancet
