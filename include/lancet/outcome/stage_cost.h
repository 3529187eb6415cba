// What a stage of a job cost.
#pragma once

#include <string>
#include <vector>

#include "lancet/runtime/communicator.h"
#include "lancet/runtime/memory_watch.h"

namespace lancet {

struct StageCost {
  std::string stage;
  double seconds = 0;
  PeakBytes peaks;  ///< most memory by device
};

double total_seconds(const std::vector<StageCost>& stages);
PeakBytes overall_peaks(const std::vector<StageCost>& stages);

/// Collective. Every rank went through the same stages: a stage's peaks become the most that a rank had.
void raise_to_ranks(std::vector<StageCost>& stages, Communicator& communicator);

}  // namespace lancet
