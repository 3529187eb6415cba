// Attributes and items of values, and calls.
#include <algorithm>

#include "arguments.h"
#include "characters.h"
#include "lancet/core/strings.h"
#include "loops.h"
#include "methods.h"
#include "operations.h"

namespace lancet {
namespace {

/// Returns the position of an item; nullopt if it is outside of `length` items.
std::optional<size_t> place_of(int64_t index, int64_t length) {
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<size_t>(index);
}

/// Returns value[key] as in Python; nullopt for TypeError or LookupError.
std::optional<JinjaValue> find_item(JinjaRun& run, const JinjaValue& value, const JinjaValue& key) {
  switch (value.kind()) {
    case JinjaKind::kUndefined:
      run.fail_undefined(value);
    case JinjaKind::kDict: {
      const std::optional<std::string> spelt = run.key_of(key);
      const JinjaValue* found = spelt ? value.dict().find(*spelt) : nullptr;
      return found == nullptr ? std::nullopt : std::optional(*found);
    }
    case JinjaKind::kList:
    case JinjaKind::kTuple: {
      if (!key.is_whole()) return std::nullopt;
      const std::optional<size_t> place = place_of(key.integer(), static_cast<int64_t>(value.items().size()));
      return place ? std::optional(value.items()[*place]) : std::nullopt;
    }
    case JinjaKind::kText: {
      if (!key.is_whole()) return std::nullopt;
      const std::optional<size_t> place = place_of(key.integer(), length_of(run, value));
      if (!place) return std::nullopt;
      const size_t begin = after_characters(value.text(), 0, static_cast<int64_t>(*place));
      return run.text_like(value, value.text().substr(begin, after_characters(value.text(), begin, 1) - begin));
    }
    case JinjaKind::kRange: {
      if (!key.is_whole()) return std::nullopt;
      const std::optional<size_t> place = place_of(key.integer(), value.range().length);
      if (!place) return std::nullopt;
      return JinjaValue::of(value.range().start + static_cast<int64_t>(*place) * value.range().step);
    }
    default:
      return std::nullopt;
  }
}

JinjaValue undefined_attribute(JinjaRun& run, const JinjaValue& value, const std::string& name) {
  return run.undefined(cat("'", excerpt(name, 80), "' is undefined: ", shown_type(value), " has nothing of this name"));
}

JinjaValue unsafe_attribute(JinjaRun& run, const JinjaValue& value, const std::string& name) {
  return run.undefined(cat("'", name, "' of ", shown_type(value), ": Jinja's sandbox does not let templates use it"));
}

/// Whether all objects in Python have it.
bool is_internal(const std::string& name) { return name.starts_with("__") && name.ends_with("__") && name.size() > 4; }

std::optional<JinjaValue> macro_attribute(JinjaRun& run, const JinjaFunction& function, const std::string& name) {
  if (function.macro == nullptr) return std::nullopt;
  if (name == "name") return function.name.empty() ? JinjaValue::none() : run.text(function.name);
  if (name == "arguments" || name == "catch_kwargs" || name == "catch_varargs" || name == "caller")
    run.fail(cat(name, " of a macro: lancet does not have it"));
  return std::nullopt;
}

}  // namespace

std::optional<JinjaValue> own_attribute(JinjaRun& run, const JinjaValue& value, const std::string& name) {
  if (value.is_undefined()) run.fail_undefined(value);
  if (value.is(JinjaKind::kNamespace)) {
    const JinjaValue* found = value.dict().find(JinjaRun::text_key(name));
    if (found == nullptr) return std::nullopt;
    return name.starts_with('_') ? unsafe_attribute(run, value, name) : *found;
  }
  if (is_internal(name)) return unsafe_attribute(run, value, name);
  if (value.is(JinjaKind::kLoop)) return loop_attribute(run, value, name);
  if (value.is(JinjaKind::kFunction)) return macro_attribute(run, value.function(), name);
  switch (method_kind(value, name)) {
    case JinjaMethodKind::kNone:
      return std::nullopt;
    case JinjaMethodKind::kForbidden:
      return unsafe_attribute(run, value, name);
    case JinjaMethodKind::kUnknown:
      run.fail(cat("'", name, "' of ", shown_type(value), ": lancet does not have it"));
    case JinjaMethodKind::kMethod:
      break;
  }
  return run.function(
      name, [&run, value, name](JinjaArguments& arguments) { return call_method(run, value, name, arguments); });
}

JinjaValue attribute_of(JinjaRun& run, const JinjaValue& value, const std::string& name) {
  if (std::optional<JinjaValue> own = own_attribute(run, value, name)) return *own;
  if (value.is(JinjaKind::kDict))
    if (const JinjaValue* found = value.dict().find(JinjaRun::text_key(name))) return *found;
  return undefined_attribute(run, value, name);
}

JinjaValue item_of(JinjaRun& run, const JinjaValue& value, const JinjaValue& key) {
  if (std::optional<JinjaValue> found = find_item(run, value, key)) return *found;
  if (!key.is_text()) return undefined_attribute(run, value, text_of(run, key));
  if (std::optional<JinjaValue> own = own_attribute(run, value, key.text())) return *own;
  return undefined_attribute(run, value, key.text());
}

JinjaValue slice_of(JinjaRun& run, const JinjaValue& value, const JinjaValue& start, const JinjaValue& stop,
                    const JinjaValue& step) {
  if (value.is_undefined()) run.fail_undefined(value);
  for (const JinjaValue* part : {&start, &stop, &step}) {
    if (part->is_undefined()) run.fail_undefined(*part);
    if (!part->is_none() && !part->is_whole()) run.fail(cat("a slice by ", shown_type(*part)));
  }
  if (!value.is_text() && !value.is_sequence() && !value.is(JinjaKind::kRange))
    run.fail(cat("a slice of ", shown_type(value)));
  const int64_t length = length_of(run, value), by = step.is_none() ? 1 : step.integer();
  if (by == 0) run.fail("a slice by steps of 0");
  const auto place = [&](const JinjaValue& given, int64_t fallback) {
    if (given.is_none()) return fallback;
    const int64_t at = given.integer() < 0 ? given.integer() + length : given.integer();
    return std::clamp<int64_t>(at, by > 0 ? 0 : -1, by > 0 ? length : length - 1);
  };
  const int64_t first = place(start, by > 0 ? 0 : length - 1), last = place(stop, by > 0 ? length : -1);
  if (value.is_text() && by == 1) {
    const size_t begin = after_characters(value.text(), 0, first);
    const size_t end = after_characters(value.text(), begin, std::max<int64_t>(last - first, 0));
    return run.text_like(value, value.text().substr(begin, end - begin));
  }
  if (value.is(JinjaKind::kRange)) run.fail("lancet does not slice a range: write it as a list, range(...)|list");
  const std::vector<JinjaValue> all = value.is_text() ? characters_as_values(run, value.text()) : value.items();
  std::vector<JinjaValue> chosen;
  for (int64_t at = first; by > 0 ? at < last : at > last;) {
    chosen.push_back(all[static_cast<size_t>(at)]);
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  if (value.is(JinjaKind::kTuple)) return run.tuple(std::move(chosen));
  if (value.is(JinjaKind::kList)) return run.list(std::move(chosen));
  std::string text;
  for (const JinjaValue& character : chosen) text += character.text();
  return run.text_like(value, std::move(text));
}

JinjaValue call_value(JinjaRun& run, const JinjaValue& function, JinjaArguments& arguments) {
  const JinjaRun::Level level(run);
  if (function.is_undefined()) run.fail_undefined(function);
  if (function.is(JinjaKind::kLoop)) return call_loop(run, function, arguments);
  if (!function.is(JinjaKind::kFunction)) run.fail(cat("a call of ", shown_type(function), ", which is no function"));
  return function.function().call(arguments);
}

}  // namespace lancet
