// `lancet eval` and `lancet stats`: parts of an edit job on their own.
#pragma once

#include <string>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/job/statistics_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

struct EvalReport {
  std::vector<EditRequest> requests;
  SkippedRecords skipped;
  Evaluation evaluation;
  std::string content_hash;
};

/// Collective. Measures the job's requests on the model as it is; every rank gets the whole.
EvalReport run_eval_job(const JobConfig& job, Communicator& communicator);
std::string to_json(const EvalReport& report, const JobConfig& job);

/// Collective. Puts what the job's editor needs into root's cache: covariances and their factors. The report is root's,
/// empty elsewhere.
StatisticsReport run_statistics_job(const JobConfig& job, Communicator& communicator);
std::string to_json(const StatisticsReport& report);

}  // namespace lancet
