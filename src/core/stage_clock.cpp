#include "lancet/core/stage_clock.h"

#include <atomic>

namespace lancet {
namespace {

std::atomic<StageTime (*)()> clock_now{nullptr};

}  // namespace

StageTime stage_now() {
  const auto clock = clock_now.load();
  return clock == nullptr ? std::chrono::steady_clock::now() : clock();
}

void set_stage_clock(StageTime (*clock)()) { clock_now = clock; }

}  // namespace lancet
