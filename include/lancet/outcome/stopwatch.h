// Measures seconds and memory by stage, for the report.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "lancet/outcome/batch_report.h"

namespace lancet {

class Stopwatch {
 public:
  /// Ends the stage that has run since the last call (or since construction).
  void lap(const std::string& stage) {
    const auto now = Clock::now();
    stages_.push_back({stage, std::chrono::duration<double>(now - begun_).count(), meter_.lap()});
    begun_ = now;
  }

  /// Returns the stages so far, in order.
  const std::vector<StageCost>& stages() const { return stages_; }
  /// Collective. Calls raise_to_ranks() for the stages so far.
  void raise_to(Communicator& communicator) { raise_to_ranks(stages_, communicator); }

  /// Restarts the clock; the time since the last call belongs to no stage.
  void restart() {
    meter_.lap();
    begun_ = Clock::now();
  }

  /// Ends a part of a stage that alternates with other stages. Parts with the same name are added up to one stage.
  void lap_part(const std::string& stage) {
    lap(stage);
    const StageCost part = std::move(stages_.back());
    stages_.pop_back();
    const auto known =
        std::find_if(stages_.begin(), stages_.end(), [&](const StageCost& cost) { return cost.stage == stage; });
    if (known == stages_.end()) {
      stages_.push_back(part);
    } else {
      known->seconds += part.seconds;
      lancet::raise_to(known->peaks, part.peaks);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<StageCost> stages_;
  PeakMeter meter_;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace lancet
