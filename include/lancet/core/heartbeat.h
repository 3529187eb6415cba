// A sign of life. When nothing was told for a minute although a stage is under way, a line says which stage, how far
// it is and for how long it has run: a long solve must not look like a hang.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "lancet/core/reporter.h"

namespace lancet {

/// How long nothing may be told.
inline constexpr double kHeartbeatSeconds = 60.0;

/// Speaks for a stage from a thread of its own until it is destroyed; of several that live, the youngest speaks. It
/// speaks to the reporter of the thread that makes it, and not where that wants no progress.
class Heartbeat {
 public:
  /// `now`: how far the stage is; the time is added to its line. Called from another thread.
  explicit Heartbeat(std::function<StageProgress()> now);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  bool is_due() const;
  void watch(const std::stop_token& stop);

  std::function<StageProgress()> now_;
  Reporter& reporter_ = reporter();
  StageTime begun_ = stage_now();
  std::jthread thread_;  // last: it uses the rest
};

/// A stage that has no Progress of its own, or only for parts of it.
class StageHeartbeat {
 public:
  explicit StageHeartbeat(const std::string& name)
      : heartbeat_([name] { return StageProgress{.stage = name, .line = name}; }) {}

 private:
  Heartbeat heartbeat_;
};

}  // namespace lancet
