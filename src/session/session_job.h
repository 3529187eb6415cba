// What a session is opened by, and what memory is planned for.
#pragma once

#include <cstdint>

#include "lancet/job_setup/parse_job.h"
#include "lancet/plan/job_plan.h"
#include "lancet/plan/model_session.h"

namespace lancet {

/// The job of a session: `evaluate` is efficacy where nothing is said. Throws: ConfigError.
JobConfig parse_session(const CompletedJob& completed);

/// What one edit() of `n_requests` takes. Where the cache may have the job's statistics, reads the weights that their
/// keys depend on; what is there counts nothing. Throws: ConfigError for a number of requests out of range.
Workload planned_work(const JobConfig& job, const ModelFiles& files, int64_t n_requests);

}  // namespace lancet
