#include "run.h"

#include <cmath>

#include "lancet/core/strings.h"
#include "number_text.h"

namespace lancet {

JinjaError::JinjaError(Cause cause, std::string reason, int64_t line)
    : Error(ExitCode::kCheckpoint, cat("line ", line, ": ", reason)),
      cause_(cause),
      reason_(std::move(reason)),
      line_(line) {}

void JinjaRun::fail(const std::string& reason) const { throw JinjaError(JinjaError::Cause::kTemplate, reason, line_); }

void JinjaRun::fail_limit(const char* what) const {
  const std::string_view kind = what;
  std::string reason;
  if (kind == "steps") {
    reason = cat("the template takes more than ", count_text(static_cast<size_t>(limits_.steps)), " steps");
  } else if (kind == "memory") {
    reason = cat("the template makes more than ", binary_bytes_text(static_cast<uint64_t>(limits_.memory_bytes)),
                 " of values");
  } else {
    reason = cat("the template nests calls and values more than ", limits_.depth, " levels deep");
  }
  throw JinjaError(JinjaError::Cause::kLimit, reason, line_);
}

JinjaValue JinjaRun::text(std::string text) {
  charge_bytes(text.size());
  JinjaText& made = make<JinjaText>(text.size());
  made.text = std::move(text);
  return {JinjaKind::kText, &made};
}

JinjaValue JinjaRun::safe_text(std::string text) {
  charge_bytes(text.size());
  JinjaText& made = make<JinjaText>(text.size());
  made.text = std::move(text);
  made.is_safe = true;
  return {JinjaKind::kText, &made};
}

JinjaValue JinjaRun::text_like(const JinjaValue& like, std::string made) {
  return like.is_safe_text() ? safe_text(std::move(made)) : text(std::move(made));
}

JinjaValue JinjaRun::sequence(JinjaKind kind, std::vector<JinjaValue> items) {
  charge(static_cast<int64_t>(items.size() / 8));
  JinjaItems& made = make<JinjaItems>(items.size() * sizeof(JinjaValue));
  made.items = std::move(items);
  return {kind, &made};
}

JinjaValue JinjaRun::dict(std::vector<JinjaDict::Entry> entries) {
  JinjaDict& made = make<JinjaDict>();
  for (const JinjaDict::Entry& entry : entries) put(made, entry.key, entry.value);
  return {JinjaKind::kDict, &made};
}

JinjaValue JinjaRun::undefined(std::string reason) {
  JinjaUndefined& made = make<JinjaUndefined>(reason.size());
  made.reason = std::move(reason);
  return {JinjaKind::kUndefined, &made};
}

JinjaValue JinjaRun::iterator(std::function<std::optional<JinjaValue>()> next) {
  JinjaIterator& made = make<JinjaIterator>();
  made.next = std::move(next);
  return {JinjaKind::kIterator, &made};
}

JinjaValue JinjaRun::function(std::string name, std::function<JinjaValue(JinjaArguments&)> call) {
  JinjaFunction& made = make<JinjaFunction>();
  made.name = std::move(name);
  made.call = std::move(call);
  return {JinjaKind::kFunction, &made};
}

JinjaValue JinjaRun::data(const JinjaData& data) {
  const Level level(*this);
  charge(1);
  struct Maker {
    JinjaRun& run;
    JinjaValue operator()(std::monostate) const { return JinjaValue::none(); }
    JinjaValue operator()(bool truth) const { return JinjaValue::of(truth); }
    JinjaValue operator()(int64_t integer) const { return JinjaValue::of(integer); }
    JinjaValue operator()(double real) const { return JinjaValue::of(real); }
    JinjaValue operator()(const std::string& text) const { return run.text(text); }
    JinjaValue operator()(const JinjaDataList& list) const {
      std::vector<JinjaValue> items;
      for (const JinjaData& item : list) items.push_back(run.data(item));
      return run.list(std::move(items));
    }
    JinjaValue operator()(const JinjaDataMap& map) const {
      JinjaDict& made = run.make<JinjaDict>();
      for (const auto& [key, value] : map) run.put(made, run.text(key), run.data(value));
      return {JinjaKind::kDict, &made};
    }
  };
  return std::visit(Maker{*this}, data.value);
}

void JinjaRun::put(JinjaDict& dict, const JinjaValue& key, const JinjaValue& value) {
  std::optional<std::string> spelt = key_of(key);
  if (!spelt) fail("a list or a dict cannot be a dict's key");
  charge_memory(static_cast<int64_t>(sizeof(JinjaDict::Entry) + spelt->size()) + 64);
  const auto [place, is_new] = dict.places.try_emplace(std::move(*spelt), dict.entries.size());
  if (is_new) {
    dict.entries.push_back({key, value});
  } else {
    dict.entries[place->second].value = value;
  }
}

std::optional<std::string> JinjaRun::key_of(const JinjaValue& key) {
  charge(1);
  switch (key.kind()) {
    case JinjaKind::kText:
      charge_bytes(key.text().size());
      return text_key(key.text());
    case JinjaKind::kInteger:
    case JinjaKind::kBoolean:
      return cat("n", key.integer());
    case JinjaKind::kFloat:
      if (const double whole = std::trunc(key.real()); whole == key.real() && std::abs(whole) < 9e18)
        return cat("n", static_cast<int64_t>(whole));
      return cat("f", python_float_text(key.real()));
    case JinjaKind::kNone:
      return "none";
    case JinjaKind::kUndefined:
      return "undefined";
    case JinjaKind::kTuple: {
      const Level level(*this);
      std::string spelt = "(";
      for (const JinjaValue& item : key.items()) {
        const std::optional<std::string> part = key_of(item);
        if (!part) return std::nullopt;
        spelt += cat(part->size(), ":", *part);
      }
      return spelt;
    }
    case JinjaKind::kRange: {
      const JinjaRange& range = key.range();
      return range.length == 0 ? "r" : cat("r", range.start, " ", range.length, " ", range.length > 1 ? range.step : 0);
    }
    case JinjaKind::kList:
    case JinjaKind::kDict:
    case JinjaKind::kView:
      return std::nullopt;
    default:
      return cat("@", reinterpret_cast<uintptr_t>(key.object()));
  }
}

}  // namespace lancet
