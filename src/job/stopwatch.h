// Seconds and memory by stage, for the report.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lancet/job/stage_cost.h"

namespace lancet {

class Stopwatch {
 public:
  explicit Stopwatch(std::vector<StageCost>& stages) : stages_(stages) {}
  /// Ends the stage that has run since the last call (or since construction).
  void lap(const std::string& stage) {
    const auto now = Clock::now();
    stages_.push_back({stage, std::chrono::duration<double>(now - begun_).count(), meter_.lap()});
    begun_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<StageCost>& stages_;
  PeakMeter meter_;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace lancet
