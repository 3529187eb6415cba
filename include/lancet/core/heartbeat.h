// A sign of life. When nothing was printed for a minute although a stage is under way, a line says which stage, how far
// it is and for how long it has run: a long solve must not look like a hang.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace lancet {

/// How long nothing may be printed.
inline constexpr double kHeartbeatSeconds = 60.0;

using StageTime = std::chrono::steady_clock::time_point;
/// The time as stages see it.
StageTime stage_now();
/// For tests; null: the steady clock again. Set while no stage lives.
void set_stage_clock(StageTime (*clock)());

/// Speaks for a stage from a thread of its own until it is destroyed; of several that live, the youngest speaks.
/// Silent with Verbosity::kQuiet.
class Heartbeat {
 public:
  /// `line`: "values  64/100 requests"; the time is added. Called from another thread.
  explicit Heartbeat(std::function<std::string()> line);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  bool is_due() const;
  void watch(const std::stop_token& stop);

  std::function<std::string()> line_;
  StageTime begun_ = stage_now();
  std::jthread thread_;  // last: it uses the rest
};

/// A stage that has no Progress of its own, or only for parts of it.
class StageHeartbeat {
 public:
  explicit StageHeartbeat(std::string name) : heartbeat_([name = std::move(name)] { return name; }) {}

 private:
  Heartbeat heartbeat_;
};

}  // namespace lancet
