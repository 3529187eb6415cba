// One run of a template: its values, and its remaining limits.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/jinja/jinja_template.h"
#include "values.h"

namespace lancet {

class JinjaRun {
 public:
  JinjaRun(const JinjaLimits& limits, const std::tm& now) : limits_(limits), now_(now) {}

  const std::tm& now() const { return now_; }

  // Errors name the line that is running.
  void enter_line(int64_t line) { line_ = line; }
  int64_t line() const { return line_; }
  [[noreturn]] void fail(const std::string& reason) const;
  /// Throws the error for the use of an undefined value.
  [[noreturn]] void fail_undefined(const JinjaValue& value) const { fail(value.undefined().reason); }

  /// Counts work: the number of evaluated parts. Throws: JinjaError beyond the limit.
  void charge(int64_t steps) {
    steps_ += steps;
    if (steps_ > limits_.steps) fail_limit("steps");
  }
  /// Counts work on so many bytes.
  void charge_bytes(size_t bytes) { charge(static_cast<int64_t>(bytes / 64)); }
  /// Throws: JinjaError if so many more bytes exceed the limit. Call it before they are allocated.
  void charge_memory(int64_t bytes) {
    memory_ += bytes;
    if (memory_ > limits_.memory_bytes) fail_limit("memory");
  }

  /// Counts the nesting of evaluations.
  class Level {
   public:
    explicit Level(JinjaRun& run) : run_(run) {
      if (++run_.depth_ > run_.limits_.depth) {
        --run_.depth_;
        run_.fail_limit("nesting");
      }
    }
    ~Level() { --run_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    JinjaRun& run_;
  };

  /// Makes an object that exists until the end of the run. `bytes`: its additional memory.
  template <typename Object>
  Object& make(size_t bytes = 0) {
    charge_memory(static_cast<int64_t>(sizeof(Object) + bytes) + 16);
    auto made = std::make_unique<Object>();
    Object& object = *made;
    objects_.push_back(std::move(made));
    return object;
  }

  JinjaValue text(std::string text);
  JinjaValue safe_text(std::string text);
  /// Returns text that is marked as safe if `like` is.
  JinjaValue text_like(const JinjaValue& like, std::string text);
  JinjaValue list(std::vector<JinjaValue> items) { return sequence(JinjaKind::kList, std::move(items)); }
  JinjaValue tuple(std::vector<JinjaValue> items) { return sequence(JinjaKind::kTuple, std::move(items)); }
  JinjaValue dict(std::vector<JinjaDict::Entry> entries);
  JinjaValue undefined(std::string reason);
  JinjaValue iterator(std::function<std::optional<JinjaValue>()> next);
  JinjaValue function(std::string name, std::function<JinjaValue(JinjaArguments&)> call);
  /// Returns a value from the data that a caller of the library gave.
  JinjaValue data(const JinjaData& data);

  void put(JinjaDict& dict, const JinjaValue& key, const JinjaValue& value);
  /// Returns the spelling of a key. Spellings are equal if the keys are equal in Python. nullopt: it cannot be a key.
  std::optional<std::string> key_of(const JinjaValue& key);
  static std::string text_key(std::string_view text) { return "s" + std::string(text); }

 private:
  [[noreturn]] void fail_limit(const char* what) const;
  JinjaValue sequence(JinjaKind kind, std::vector<JinjaValue> items);

  const JinjaLimits limits_;
  const std::tm now_;
  int64_t line_ = 1;
  int64_t steps_ = 0, memory_ = 0, depth_ = 0;
  std::vector<std::unique_ptr<JinjaObject>> objects_;
};

}  // namespace lancet
