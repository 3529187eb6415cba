#include "lancet/outcome/stage_cost.h"

#include <sstream>

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

void raise_to_ranks(std::vector<StageCost>& stages, Communicator& communicator) {
  if (communicator.size() == 1) return;
  std::ostringstream own;  // lines of stage, bytes, device
  for (size_t i = 0; i < stages.size(); ++i)
    for (const auto& [device, bytes] : stages[i].peaks) own << i << ' ' << bytes << ' ' << device << '\n';
  for (const std::string& of_rank : communicator.gather(own.str())) {
    std::istringstream lines(of_rank);
    size_t stage = 0;
    int64_t bytes = 0;
    for (std::string device; lines >> stage >> bytes >> device;) raise_to(stages.at(stage).peaks, {{device, bytes}});
  }
}

}  // namespace lancet
