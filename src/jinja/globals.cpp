#include "globals.h"

#include <algorithm>
#include <array>

#include "arguments.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr int64_t kMostOfRange = 100'000;  // as in Jinja's sandbox

JinjaValue make_range(JinjaRun& run, const JinjaArguments& given) {
  refuse_named(run, "range", given);
  const JinjaBoundArguments arguments(run, "range", given, {"start", "stop", "step"});
  const bool is_stop_alone = !arguments.has(1);
  JinjaRange& range = run.make<JinjaRange>();
  range.start = is_stop_alone ? 0 : arguments.need_integer(0);
  range.stop = arguments.need_integer(is_stop_alone ? 0 : 1);
  range.step = arguments.integer(2, 1);
  if (range.step == 0) run.fail("range: a step of 0");
  int64_t span = 0, step = range.step;
  const bool overflows = range.step > 0 ? __builtin_sub_overflow(range.stop, range.start, &span)
                                        : __builtin_sub_overflow(range.start, range.stop, &span) ||
                                              __builtin_sub_overflow(int64_t{0}, range.step, &step);
  if (overflows) run.fail("range: numbers that 64 bits do not hold");
  range.length = span <= 0 ? 0 : (span - 1) / step + 1;
  if (range.length > kMostOfRange)
    run.fail(cat("range: expected at most ", count_text(kMostOfRange), " numbers, got ",
                 count_text(static_cast<size_t>(range.length))));
  return {JinjaKind::kRange, &range};
}

/// Fills a dict from the arguments of dict() and namespace(): a dict or pairs, and values by name.
void fill_dict(JinjaRun& run, std::string_view function, const JinjaArguments& given, JinjaDict& dict) {
  if (given.positional.size() > 1) run.fail(cat(function, ": expected at most one dict"));
  if (!given.positional.empty()) {
    const JinjaValue& first = given.positional[0];
    // Python asks the value for keys(), which it does not do with a list
    if (first.is_undefined()) run.fail_undefined(first);
    if (first.is(JinjaKind::kDict)) {
      for (const JinjaDict::Entry& entry : first.dict().entries) run.put(dict, entry.key, entry.value);
    } else {
      for (const JinjaValue& pair : items_of(run, first)) {
        const std::vector<JinjaValue> both = items_of(run, pair);
        if (both.size() != 2) run.fail(cat(function, ": expected pairs, got one of ", both.size()));
        run.put(dict, both[0], both[1]);
      }
    }
  }
  for (const auto& [name, value] : given.named) run.put(dict, run.text(name), value);
}

JinjaValue make_dict(JinjaRun& run, const JinjaArguments& given) {
  JinjaDict& made = run.make<JinjaDict>();
  fill_dict(run, "dict", given, made);
  return {JinjaKind::kDict, &made};
}

JinjaValue make_namespace(JinjaRun& run, const JinjaArguments& given) {
  JinjaDict& made = run.make<JinjaDict>();
  fill_dict(run, "namespace", given, made);
  return {JinjaKind::kNamespace, &made};
}

JinjaValue raise_exception(JinjaRun& run, const JinjaArguments& given) {
  const JinjaBoundArguments arguments(run, "raise_exception", given, {"message"});
  throw JinjaError(JinjaError::Cause::kRaised, text_of(run, arguments.need(0)), run.line());
}

JinjaValue strftime_now(JinjaRun& run, const JinjaArguments& given) {
  const JinjaBoundArguments arguments(run, "strftime_now", given, {"format"});
  constexpr size_t kMostFormat = 1000;
  std::string form;
  const std::string& asked = arguments.need_text(0);
  if (asked.size() > kMostFormat || asked.find('\0') != std::string::npos)
    run.fail("strftime_now: a format too long, or with a NUL");
  for (size_t at = 0; at < asked.size(); ++at) {
    if (asked[at] != '%' || at + 1 == asked.size()) {
      form += asked[at];
      continue;
    }
    const char letter = asked[++at];
    if (letter == 'z' || letter == 'Z') continue;  // a time without a zone has no name for its zone
    if (letter == 'f') run.fail("strftime_now: %f: lancet tells the time in seconds");
    form += {'%', letter};
  }
  std::array<char, 16 * kMostFormat> text{};
  form += '.';  // so that an empty result differs from one that does not fit
  const size_t size = std::strftime(text.data(), text.size(), form.c_str(), &run.now());
  if (size == 0) run.fail("strftime_now: the text is too long");
  return run.text(std::string(text.data(), size - 1));
}

using GlobalFunction = JinjaValue (*)(JinjaRun&, const JinjaArguments&);
struct Global {
  std::string_view name;
  GlobalFunction call;
};
constexpr Global kGlobals[] = {{"range", make_range},
                               {"dict", make_dict},
                               {"namespace", make_namespace},
                               {"raise_exception", raise_exception},
                               {"strftime_now", strftime_now}};
constexpr std::string_view kOtherGlobals[] = {"cycler", "joiner", "lipsum"};

}  // namespace

std::optional<JinjaValue> find_global(JinjaRun& run, const std::string& name) {
  for (const Global& global : kGlobals)
    if (global.name == name)
      return run.function(name, [&run, call = global.call](JinjaArguments& given) { return call(run, given); });
  if (std::ranges::find(kOtherGlobals, name) == std::end(kOtherGlobals)) return std::nullopt;
  return run.function(name, [&run, name](JinjaArguments&) -> JinjaValue {
    run.fail(cat(name, "(): lancet does not have this function of Jinja's"));
  });
}

}  // namespace lancet
