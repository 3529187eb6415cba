// `lancet edit --rehearse`: the job's stages on its devices with the first requests, to see in a minute what would fail
// after hours, how much memory it takes, and about how long it will run. Writes nothing that stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

/// One stage as it was rehearsed, and what that says of the whole job.
struct RehearsedStage {
  StageCost cost;  ///< cost of the rehearsal; the stage's name says of how much
  double estimate_s = 0;
  std::string how;  ///< the estimate was made; empty: the stage is the job's, as measured
};

struct RehearsalReport {
  std::string devices;
  std::string model_dtype;
  int64_t requests = 0;   ///< requests of the job
  int64_t edited = 0;     ///< requests edited in the rehearsal
  int64_t evaluated = 0;  ///< requests evaluated in the rehearsal: as many as fill one forward pass
  int64_t together = 0;   ///< requests whose values were optimised at a time, as in the job; 0: no method of values
  std::vector<RehearsedStage> stages;
  std::vector<std::string> limits;  ///< what the rehearsal does not show

  double estimate_s() const;
};

/// Collective; the report is root's. Throws: what run_edit_job() throws where it would. Weights, cache and output stay
/// as they are; what has to be written goes to hidden folders beside the output and the cache, which are removed.
RehearsalReport rehearse_edit_job(JobConfig job, Communicator& communicator);

std::string to_json(const RehearsalReport& report);

}  // namespace lancet
