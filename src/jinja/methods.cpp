#include "methods.h"

#include <algorithm>
#include <array>

#include "arguments.h"

namespace lancet {

bool has_text_method(std::string_view name);

namespace {

constexpr std::string_view kTextOthers[] = {"casefold",  "encode",      "expandtabs", "format_map", "isidentifier",
                                            "isnumeric", "isprintable", "istitle",    "maketrans",  "translate"};
constexpr std::string_view kMarkupOthers[] = {"unescape", "striptags", "escape"};
constexpr std::string_view kDictMethods[] = {"keys", "values", "items", "get", "copy"};
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListMethods[] = {"index", "count", "copy"};
constexpr std::string_view kListChanges[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
constexpr std::string_view kNumberOthers[] = {"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
                                              "from_bytes",       "imag",      "numerator",  "real",      "to_bytes",
                                              "fromhex",          "hex",       "is_integer"};
constexpr std::string_view kViewOthers[] = {"isdisjoint", "mapping"};
constexpr std::string_view kRangeOthers[] = {"start", "stop", "step", "index", "count"};
constexpr std::string_view kIteratorOthers[] = {"send", "throw", "close", "gi_running", "gi_yieldfrom", "gi_suspended"};

template <typename Names>
bool has_name(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

JinjaMethodKind known_if(bool is_known, bool is_other) {
  return is_known ? JinjaMethodKind::kMethod : is_other ? JinjaMethodKind::kUnknown : JinjaMethodKind::kNone;
}

JinjaValue call_dict_method(JinjaRun& run, const JinjaValue& self, std::string_view name,
                            const JinjaArguments& arguments) {
  refuse_named(run, name, arguments);
  const auto view = [&](JinjaView::Part part) {
    const JinjaBoundArguments none(run, name, arguments, {});
    JinjaView& made = run.make<JinjaView>();
    made.dict = &self.dict();
    made.part = part;
    return JinjaValue(JinjaKind::kView, &made);
  };
  if (name == "keys") return view(JinjaView::Part::kKeys);
  if (name == "values") return view(JinjaView::Part::kValues);
  if (name == "items") return view(JinjaView::Part::kItems);
  if (name == "copy") return run.dict(self.dict().entries);
  const JinjaBoundArguments bound(run, name, arguments, {"key", "default"});
  const std::optional<std::string> key = run.key_of(bound.need(0));
  if (!key) run.fail(cat("get: ", shown_type(bound.need(0)), " can be no key"));
  const JinjaValue* found = self.dict().find(*key);
  return found != nullptr ? *found : bound[1].value_or(JinjaValue::none());
}

JinjaValue call_list_method(JinjaRun& run, const JinjaValue& self, std::string_view name,
                            const JinjaArguments& arguments) {
  refuse_named(run, name, arguments);
  if (name == "copy") return run.list(self.items());
  const JinjaBoundArguments bound(run, name, arguments, {"value"});
  int64_t count = 0;
  for (size_t i = 0; i < self.items().size(); ++i) {
    if (!are_equal(run, self.items()[i], bound.need(0))) continue;
    if (name == "index") return JinjaValue::of(i);
    ++count;
  }
  if (name == "index") run.fail("index: the list does not have it");
  return JinjaValue::of(count);
}

}  // namespace

JinjaMethodKind method_kind(const JinjaValue& value, std::string_view name) {
  switch (value.kind()) {
    case JinjaKind::kText:
      return known_if(has_text_method(name),
                      has_name(kTextOthers, name) || (value.is_safe_text() && has_name(kMarkupOthers, name)));
    case JinjaKind::kDict:
      if (has_name(kDictChanges, name)) return JinjaMethodKind::kForbidden;
      return known_if(has_name(kDictMethods, name), name == "fromkeys");
    case JinjaKind::kList:
      if (has_name(kListChanges, name)) return JinjaMethodKind::kForbidden;
      return known_if(has_name(kListMethods, name), false);
    case JinjaKind::kTuple:
      return known_if(name == "index" || name == "count", false);
    case JinjaKind::kBoolean:
    case JinjaKind::kInteger:
    case JinjaKind::kFloat:
      return known_if(false, has_name(kNumberOthers, name));
    case JinjaKind::kView:
      return known_if(false, has_name(kViewOthers, name));
    case JinjaKind::kRange:
      return known_if(false, has_name(kRangeOthers, name));
    case JinjaKind::kIterator:
      return known_if(false, has_name(kIteratorOthers, name));
    default:
      return JinjaMethodKind::kNone;
  }
}

JinjaValue call_method(JinjaRun& run, const JinjaValue& self, std::string_view name, const JinjaArguments& arguments) {
  if (self.is_text()) return call_text_method(run, self, name, arguments);
  return self.is(JinjaKind::kDict) ? call_dict_method(run, self, name, arguments)
                                   : call_list_method(run, self, name, arguments);
}

}  // namespace lancet
