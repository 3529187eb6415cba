// Filters for whole lists.
#include <algorithm>
#include <memory>
#include <set>

#include "arguments.h"
#include "characters.h"
#include "filters.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

JinjaBoundArguments bind_list(const JinjaFilterCall& call, std::initializer_list<std::string_view> names) {
  return {call.run, call.name, call.given, names};
}

JinjaValue argument_or_none(const JinjaBoundArguments& arguments, size_t i) {
  return arguments[i].value_or(JinjaValue::none());
}

JinjaValue length_filter(const JinjaFilterCall& call) {
  bind_list(call, {});
  return JinjaValue::of(length_of(call.run, call.value));
}

JinjaValue list_filter(const JinjaFilterCall& call) {
  bind_list(call, {});
  return call.run.list(items_of(call.run, call.value));
}

JinjaValue first_filter(const JinjaFilterCall& call) {
  bind_list(call, {});
  return iterate(call.run, call.value).next().value_or(call.run.undefined("|first of a list without items"));
}

/// Whether reversed() accepts it.
bool can_be_reversed(const JinjaValue& value) { return has_length(value) && !value.is(JinjaKind::kLoop); }

JinjaValue last_filter(const JinjaFilterCall& call) {
  bind_list(call, {});
  if (!can_be_reversed(call.value)) call.run.fail(cat("last: expected a list, got ", shown_type(call.value)));
  const std::vector<JinjaValue> items = items_of(call.run, call.value);
  return items.empty() ? call.run.undefined("|last of a list without items") : items.back();
}

JinjaValue iterator_over(JinjaRun& run, std::vector<JinjaValue> items) {
  return run.iterator([items = std::move(items), at = size_t{0}]() mutable -> std::optional<JinjaValue> {
    if (at >= items.size()) return std::nullopt;
    return items[at++];
  });
}

JinjaValue reverse_filter(const JinjaFilterCall& call) {
  bind_list(call, {});
  std::vector<JinjaValue> items = items_of(call.run, call.value);
  std::ranges::reverse(items);
  if (!call.value.is_text())
    return can_be_reversed(call.value) ? iterator_over(call.run, std::move(items)) : call.run.list(std::move(items));
  std::string text;
  for (const JinjaValue& character : items) text += character.text();
  return call.run.text_like(call.value, std::move(text));
}

JinjaValue join_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"d", "attribute"});
  const std::string separator = arguments.has(0) ? text_of(call.run, *arguments[0]) : "";
  const JinjaGetter get = attribute_getter(call.run, argument_or_none(arguments, 1));
  JinjaIterator& items = iterate(call.run, call.value);
  std::string made;
  bool is_first = true;
  while (const std::optional<JinjaValue> item = items.next()) {
    const std::string text = text_of(call.run, get(*item));
    call.run.charge(1);
    call.run.charge_memory(static_cast<int64_t>(separator.size() + text.size()));
    if (!std::exchange(is_first, false)) made += separator;
    made += text;
  }
  return call.run.text(std::move(made));
}

/// The items, each with the values by which it is sorted.
using Keyed = std::vector<std::pair<std::vector<JinjaValue>, JinjaValue>>;

bool keys_less(JinjaRun& run, const std::vector<JinjaValue>& left, const std::vector<JinjaValue>& right) {
  for (size_t i = 0; i < left.size(); ++i)
    if (!are_equal(run, left[i], right[i])) return compare(run, "<", left[i], right[i]);
  return false;
}

JinjaValue sorted_values(JinjaRun& run, Keyed keyed, bool reverses) {
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return reverses ? keys_less(run, b.first, a.first) : keys_less(run, a.first, b.first);
  });
  std::vector<JinjaValue> items;
  for (const auto& [key, item] : keyed) items.push_back(item);
  return run.list(std::move(items));
}

JinjaValue sort_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"reverse", "case_sensitive", "attribute"});
  std::vector<JinjaGetter> getters;
  const JinjaValue attribute = argument_or_none(arguments, 2);
  if (attribute.is_text()) {
    for (const std::string& part : split_text(call.run, attribute.text(), {.separator = ","}))
      getters.push_back(attribute_getter(call.run, call.run.text(part)));
  } else {
    getters.push_back(attribute_getter(call.run, attribute));
  }
  const bool minds_case = arguments.truth(1, false);
  Keyed keyed;
  for (const JinjaValue& item : items_of(call.run, call.value)) {
    std::vector<JinjaValue> key;
    for (const JinjaGetter& get : getters) key.push_back(minds_case ? get(item) : without_case(call.run, get(item)));
    keyed.emplace_back(std::move(key), item);
  }
  return sorted_values(call.run, std::move(keyed), arguments.truth(0, false));
}

JinjaValue dictsort_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"case_sensitive", "by", "reverse"});
  const std::string by = arguments.has(1) ? arguments.need_text(1) : "key";
  if (by != "key" && by != "value") call.run.fail(cat("dictsort: expected by 'key' or 'value', got '", by, "'"));
  if (call.value.is_undefined()) call.run.fail_undefined(call.value);
  if (!call.value.is(JinjaKind::kDict)) call.run.fail(cat("dictsort: expected a dict, got ", shown_type(call.value)));
  const bool minds_case = arguments.truth(0, false);
  Keyed keyed;
  for (const JinjaDict::Entry& entry : call.value.dict().entries) {
    const JinjaValue& key = by == "key" ? entry.key : entry.value;
    keyed.emplace_back(std::vector{minds_case ? key : without_case(call.run, key)},
                       call.run.tuple({entry.key, entry.value}));
  }
  return sorted_values(call.run, std::move(keyed), arguments.truth(2, false));
}

JinjaValue items_filter(const JinjaFilterCall& call) {
  bind_list(call, {});
  JinjaRun& run = call.run;
  return run.iterator([&run, value = call.value, at = size_t{0}]() mutable -> std::optional<JinjaValue> {
    if (value.is_undefined()) return std::nullopt;
    if (!value.is(JinjaKind::kDict)) run.fail(cat("items: expected a dict, got ", shown_type(value)));
    if (at >= value.dict().entries.size()) return std::nullopt;
    const JinjaDict::Entry& entry = value.dict().entries[at++];
    return run.tuple({entry.key, entry.value});
  });
}

JinjaValue unique_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"case_sensitive", "attribute"});
  JinjaRun& run = call.run;
  const JinjaGetter get = attribute_getter(run, argument_or_none(arguments, 1));
  const bool minds_case = arguments.truth(0, false);
  JinjaIterator* items = nullptr;
  auto seen = std::make_shared<std::set<std::string>>();
  return run.iterator([&run, get, minds_case, items, seen, value = call.value]() mutable -> std::optional<JinjaValue> {
    if (items == nullptr) items = &iterate(run, value);
    while (const std::optional<JinjaValue> item = items->next()) {
      const JinjaValue key = get(*item);
      std::optional<std::string> spelt = run.key_of(minds_case ? key : without_case(run, key));
      if (!spelt) run.fail(cat("unique: ", shown_type(key), " cannot be told apart from others"));
      run.charge_memory(static_cast<int64_t>(spelt->size()) + 64);
      if (seen->insert(std::move(*spelt)).second) return item;
    }
    return std::nullopt;
  });
}

JinjaValue extreme_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"case_sensitive", "attribute"});
  const JinjaGetter get = attribute_getter(call.run, argument_or_none(arguments, 1));
  const auto key_of = [&](const JinjaValue& item) {
    const JinjaValue found = get(item);
    return arguments.truth(0, false) ? found : without_case(call.run, found);
  };
  JinjaIterator& items = iterate(call.run, call.value);
  std::optional<JinjaValue> best = items.next();
  if (!best) return call.run.undefined(cat("|", call.name, " of a list without items"));
  JinjaValue best_key = key_of(*best);
  while (const std::optional<JinjaValue> item = items.next()) {
    const JinjaValue key = key_of(*item);
    if (!compare(call.run, call.name == "min" ? "<" : ">", key, best_key)) continue;
    best = item;
    best_key = key;
  }
  return *best;
}

JinjaValue sum_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"attribute", "start"});
  const JinjaGetter get = attribute_getter(call.run, argument_or_none(arguments, 0));
  JinjaValue sum = arguments.has(1) ? *arguments[1] : JinjaValue::of(int64_t{0});
  if (sum.is_text()) call.run.fail("sum: texts are joined, not summed");
  JinjaIterator& items = iterate(call.run, call.value);
  while (const std::optional<JinjaValue> item = items.next()) {
    call.run.charge(1);
    sum = arithmetic(call.run, "+", sum, get(*item));
  }
  return sum;
}

JinjaValue batch_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"linecount", "fill_with"});
  const JinjaValue count = arguments.need(0), fill = argument_or_none(arguments, 1);
  JinjaRun& run = call.run;
  if (!count.is_number()) run.fail(cat("batch: expected a number, got ", shown_type(count)));
  const int64_t size = static_cast<int64_t>(count.real());
  std::vector<std::vector<JinjaValue>> batches;
  std::vector<JinjaValue> one;
  for (const JinjaValue& item : items_of(run, call.value)) {
    if (static_cast<int64_t>(one.size()) == size) batches.push_back(std::exchange(one, {}));
    one.push_back(item);
  }
  if (!one.empty()) {
    if (!fill.is_none())
      for (run.charge_memory(std::max<int64_t>(size, 0) * 16); static_cast<int64_t>(one.size()) < size;)
        one.push_back(fill);
    batches.push_back(std::move(one));
  }
  std::vector<JinjaValue> lists;
  for (std::vector<JinjaValue>& batch : batches) lists.push_back(run.list(std::move(batch)));
  return iterator_over(run, std::move(lists));
}

JinjaValue slice_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments = bind_list(call, {"slices", "fill_with"});
  const int64_t slices = arguments.need_integer(0);
  const JinjaValue fill = argument_or_none(arguments, 1);
  if (slices == 0) call.run.fail("slice: expected slices, got 0");
  const std::vector<JinjaValue> items = items_of(call.run, call.value);
  call.run.charge(std::max<int64_t>(slices, 0));
  std::vector<JinjaValue> lists;
  size_t at = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const auto size = static_cast<int64_t>(items.size());
    const bool has_more = i < size % slices;
    const size_t end = at + static_cast<size_t>(size / slices + (has_more ? 1 : 0));
    std::vector<JinjaValue> part(items.begin() + static_cast<ptrdiff_t>(at),
                                 items.begin() + static_cast<ptrdiff_t>(end));
    if (!fill.is_none() && !has_more) part.push_back(fill);
    lists.push_back(call.run.list(std::move(part)));
    at = end;
  }
  return iterator_over(call.run, std::move(lists));
}

}  // namespace

const std::vector<JinjaFilterRow>& list_filters() {
  static const std::vector<JinjaFilterRow> kRows{
      {"length", length_filter},     {"count", length_filter},    {"list", list_filter},     {"first", first_filter},
      {"last", last_filter},         {"reverse", reverse_filter}, {"join", join_filter},     {"sort", sort_filter},
      {"dictsort", dictsort_filter}, {"items", items_filter},     {"unique", unique_filter}, {"min", extreme_filter},
      {"max", extreme_filter},       {"sum", sum_filter},         {"batch", batch_filter},   {"slice", slice_filter}};
  return kRows;
}

}  // namespace lancet
