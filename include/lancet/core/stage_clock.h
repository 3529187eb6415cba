// The time as stages of work see it.
#pragma once

#include <chrono>

namespace lancet {

using StageTime = std::chrono::steady_clock::time_point;

StageTime stage_now();

/// Replaces the clock for tests; null: the steady clock again. Set while no stage lives.
void set_stage_clock(StageTime (*clock)());

}  // namespace lancet
