#include "lancet/job/stage_cost.h"

namespace lancet {

double total_seconds(const std::vector<StageCost>& stages) {
  double total = 0;
  for (const StageCost& stage : stages) total += stage.seconds;
  return total;
}

PeakBytes overall_peaks(const std::vector<StageCost>& stages) {
  PeakBytes peaks;
  for (const StageCost& stage : stages) raise_to(peaks, stage.peaks);
  return peaks;
}

}  // namespace lancet
