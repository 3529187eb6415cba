// Seconds by stage, for the report.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace lancet {

class Stopwatch {
 public:
  explicit Stopwatch(std::vector<std::pair<std::string, double>>& seconds) : seconds_(seconds) {}
  /// Ends the stage that has run since the last call (or since construction).
  void lap(const std::string& stage) {
    const auto now = Clock::now();
    seconds_.emplace_back(stage, std::chrono::duration<double>(now - begun_).count());
    begun_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<std::pair<std::string, double>>& seconds_;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace lancet
