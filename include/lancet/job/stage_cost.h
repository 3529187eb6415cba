// What a stage of a job cost.
#pragma once

#include <string>
#include <vector>

#include "lancet/runtime/memory_watch.h"

namespace lancet {

struct StageCost {
  std::string stage;
  double seconds = 0;
  PeakBytes peaks;  ///< most memory by device
};

double total_seconds(const std::vector<StageCost>& stages);
PeakBytes overall_peaks(const std::vector<StageCost>& stages);

}  // namespace lancet
