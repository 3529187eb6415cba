// `lancet edit --rehearse`: runs the job's stages on its devices with the first requests. It shows within a minute what
// would otherwise fail after hours, how much memory the job takes, and about how long it will run. It leaves no files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lancet/job_setup/resolved_job.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

/// One rehearsed stage, and its estimate for the whole job.
struct RehearsedStage {
  StageCost cost;  ///< cost in the rehearsal; the stage's name says how much was done
  double estimate_s = 0;
  std::string how;  ///< how the estimate was made; empty: the stage is the same in the job, as measured
};

struct RehearsalReport {
  std::string devices;
  std::string model_dtype;
  int64_t requests = 0;   ///< requests of the job
  int64_t edited = 0;     ///< requests edited in the rehearsal
  int64_t evaluated = 0;  ///< requests evaluated in the rehearsal: as many as fill one forward pass
  /// Requests whose values were optimised at a time, as in the job; 0: the method optimises no values.
  int64_t together = 0;
  std::vector<RehearsedStage> stages;
  std::vector<std::string> limits;  ///< what the rehearsal does not show

  double estimate_s() const;
};

/// Collective. Rehearses the job; only root's report is filled. Throws: what run_edit_job() throws, at the same places.
/// Weights, cache and output do not change. Files that must be written go to hidden folders beside the output and the
/// cache, which are removed.
RehearsalReport rehearse_edit_job(ResolvedJob job, Communicator& communicator);

std::string to_json(const RehearsalReport& report);

}  // namespace lancet
