// Filters that apply another filter or a test to the items of a list. They compute an item only when it is requested.
#include "arguments.h"
#include "filters.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

JinjaArguments without_first(const JinjaArguments& given, size_t count) {
  JinjaArguments rest{.named = given.named};
  rest.positional.assign(given.positional.begin() + static_cast<ptrdiff_t>(std::min(count, given.positional.size())),
                         given.positional.end());
  return rest;
}

const std::string& name_at(const JinjaFilterCall& call, const JinjaArguments& given, size_t i) {
  if (!given.positional[i].is_text())
    call.run.fail(cat(call.name, ": expected a name, got ", shown_type(given.positional[i])));
  return given.positional[i].text();
}

/// Returns the result for an item; nullopt if it is left out.
using ItemStep = std::function<std::optional<JinjaValue>(const JinjaValue&)>;

/// Returns the items that a step gives. `make_step` runs when the first item is requested, so errors appear then.
JinjaValue stepped(const JinjaFilterCall& call, std::function<ItemStep()> make_step) {
  JinjaRun& run = call.run;
  JinjaIterator* items = nullptr;
  bool is_empty = false;
  return run.iterator([&run, value = call.value, make_step = std::move(make_step), items, is_empty,
                       step = ItemStep()]() mutable -> std::optional<JinjaValue> {
    if (items == nullptr && !is_empty) {
      is_empty = !is_true(run, value);
      if (!is_empty) {
        step = make_step();
        items = &iterate(run, value);
      }
    }
    if (is_empty) return std::nullopt;
    while (const std::optional<JinjaValue> item = items->next()) {
      run.charge(1);
      if (std::optional<JinjaValue> made = step(*item)) return made;
    }
    return std::nullopt;
  });
}

ItemStep attribute_step(JinjaRun& run, const JinjaArguments& given) {
  JinjaValue attribute, fallback = JinjaValue::none();
  for (const auto& [name, value] : given.named) {
    if (name == "attribute") {
      attribute = value;
    } else if (name == "default") {
      fallback = value;
    } else {
      run.fail(cat("map: no argument of the name ", name));
    }
  }
  if (fallback.is_none()) return attribute_getter(run, attribute);
  std::vector<JinjaGetter> getters;
  if (attribute.is_text()) {
    std::string part;
    for (const char c : attribute.text() + ".") {
      if (c != '.') {
        part += c;
        continue;
      }
      getters.push_back(attribute_getter(run, run.text(std::exchange(part, {}))));
    }
  } else {
    getters.push_back(attribute_getter(run, attribute));
  }
  return [getters, fallback](const JinjaValue& item) {
    JinjaValue found = item;
    for (const JinjaGetter& get : getters) {
      found = get(found);
      if (found.is_undefined()) found = fallback;
    }
    return std::optional(found);
  };
}

JinjaValue map_filter(const JinjaFilterCall& call) {
  JinjaRun& run = call.run;
  const JinjaArguments given = call.given;
  return stepped(call, [&run, given, name = call.name]() -> ItemStep {
    const bool has_attribute =
        std::ranges::any_of(given.named, [](const auto& one) { return one.first == "attribute"; });
    if (given.positional.empty() && has_attribute) return attribute_step(run, given);
    if (given.positional.empty()) run.fail("map: expected a filter's name, or attribute=");
    const std::string filter = name_at({run, name, {}, given}, given, 0);
    return [&run, filter, rest = without_first(given, 1)](const JinjaValue& item) {
      return std::optional(call_filter(run, filter, item, rest));
    };
  });
}

JinjaValue choosing_filter(const JinjaFilterCall& call) {
  JinjaRun& run = call.run;
  const JinjaArguments given = call.given;
  return stepped(call, [&run, given, name = call.name]() -> ItemStep {
    const bool by_attribute = name.ends_with("attr"), keeps = name.starts_with("select");
    const size_t place = by_attribute ? 1 : 0;
    if (by_attribute && given.positional.empty()) run.fail(cat(name, ": expected an attribute's name"));
    const JinjaGetter get =
        by_attribute ? attribute_getter(run, given.positional[0]) : [](const JinjaValue& item) { return item; };
    if (given.positional.size() <= place)
      return [&run, get, keeps](const JinjaValue& item) {
        return is_true(run, get(item)) == keeps ? std::optional(item) : std::nullopt;
      };
    const std::string test = name_at({run, name, {}, given}, given, place);
    return [&run, get, keeps, test, rest = without_first(given, place + 1)](const JinjaValue& item) {
      return call_test(run, test, get(item), rest) == keeps ? std::optional(item) : std::nullopt;
    };
  });
}

}  // namespace

const std::vector<JinjaFilterRow>& choice_filters() {
  static const std::vector<JinjaFilterRow> kRows{{"map", map_filter},
                                                 {"select", choosing_filter},
                                                 {"reject", choosing_filter},
                                                 {"selectattr", choosing_filter},
                                                 {"rejectattr", choosing_filter}};
  return kRows;
}

}  // namespace lancet
