#include "loops.h"

#include <algorithm>
#include <deque>

#include "arguments.h"

namespace lancet {
namespace {

const std::optional<JinjaValue>& look_ahead(JinjaRun& run, JinjaLoop& loop) {
  run.charge(1);
  if (!loop.has_looked_ahead || !loop.ahead) {
    loop.ahead = loop.source->next();
    loop.has_looked_ahead = true;
  }
  return loop.ahead;
}

JinjaValue cycle(JinjaRun& run, const JinjaLoop& loop, const JinjaArguments& arguments) {
  refuse_named(run, "loop.cycle", arguments);
  if (arguments.positional.empty()) run.fail("loop.cycle: expected values to go through");
  return arguments.positional[static_cast<size_t>(loop.index0) % arguments.positional.size()];
}

JinjaValue changed(JinjaRun& run, JinjaLoop& loop, const JinjaArguments& arguments) {
  refuse_named(run, "loop.changed", arguments);
  const std::vector<JinjaValue>& now = arguments.positional;
  const bool is_same =
      loop.last_changed && std::ranges::equal(*loop.last_changed, now, [&](const JinjaValue& a, const JinjaValue& b) {
        return are_equal(run, a, b);
      });
  loop.last_changed = now;
  return JinjaValue::of(!is_same);
}

}  // namespace

std::optional<JinjaValue> advance_loop(JinjaRun& run, JinjaLoop& loop) {
  std::optional<JinjaValue> item;
  if (loop.has_looked_ahead && loop.ahead) {
    item = std::exchange(loop.ahead, std::nullopt);
    loop.has_looked_ahead = false;
  } else {
    item = loop.source->next();
  }
  if (!item) return std::nullopt;
  run.charge(1);
  ++loop.index0;
  loop.before = loop.current;
  loop.current = *item;
  return item;
}

/// For an iterator, reads all remaining items.
int64_t loop_length(JinjaRun& run, JinjaLoop& loop) {
  if (loop.known_length) return *loop.known_length;
  auto rest = std::make_shared<std::deque<JinjaValue>>();
  while (const std::optional<JinjaValue> item = loop.source->next()) {
    run.charge(1);
    run.charge_memory(sizeof(JinjaValue));
    rest->push_back(*item);
  }
  const auto n_rest = static_cast<int64_t>(rest->size());
  JinjaIterator& source = run.make<JinjaIterator>();
  source.next = [rest]() -> std::optional<JinjaValue> {
    if (rest->empty()) return std::nullopt;
    const JinjaValue first = rest->front();
    rest->pop_front();
    return first;
  };
  loop.source = &source;
  loop.known_length = n_rest + loop.index0 + 1 + (loop.has_looked_ahead && loop.ahead ? 1 : 0);
  return *loop.known_length;
}

std::optional<JinjaValue> loop_attribute(JinjaRun& run, const JinjaValue& value, const std::string& name) {
  JinjaLoop& loop = value.loop();
  if (name == "index0") return JinjaValue::of(loop.index0);
  if (name == "index") return JinjaValue::of(loop.index0 + 1);
  if (name == "first") return JinjaValue::of(loop.index0 == 0);
  if (name == "last") return JinjaValue::of(!look_ahead(run, loop).has_value());
  if (name == "length") return JinjaValue::of(loop_length(run, loop));
  if (name == "revindex") return JinjaValue::of(loop_length(run, loop) - loop.index0);
  if (name == "revindex0") return JinjaValue::of(loop_length(run, loop) - loop.index0 - 1);
  if (name == "depth0") return JinjaValue::of(loop.depth0);
  if (name == "depth") return JinjaValue::of(loop.depth0 + 1);
  if (name == "previtem") return loop.index0 == 0 ? run.undefined("there is no previous item") : loop.before;
  if (name == "nextitem") return look_ahead(run, loop).value_or(run.undefined("there is no next item"));
  if (name == "cycle")
    return run.function(name, [&run, &loop](JinjaArguments& arguments) { return cycle(run, loop, arguments); });
  if (name == "changed")
    return run.function(name, [&run, &loop](JinjaArguments& arguments) { return changed(run, loop, arguments); });
  return std::nullopt;
}

JinjaValue call_loop(JinjaRun& run, const JinjaValue& value, const JinjaArguments& arguments) {
  const JinjaBoundArguments bound(run, "loop", arguments, {"iterable"});
  if (!value.loop().recurse) run.fail("loop(...): the loop is not marked as recursive");
  return value.loop().recurse(bound.need(0));
}

}  // namespace lancet
