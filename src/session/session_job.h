// How a session is opened, and what memory is planned for it.
#pragma once

#include <cstdint>

#include "lancet/job_setup/parse_job.h"
#include "lancet/plan/job_plan.h"
#include "lancet/plan/model_session.h"

namespace lancet {

/// Returns the job of a session. The default of `evaluate` is efficacy. Throws: ConfigError.
ResolvedJob parse_session(const CompletedJob& completed);

/// Returns the work of one edit() of `n_requests`. If the cache may have the job's statistics, this reads the weights
/// that their keys depend on; cached statistics need no work. Throws: ConfigError if the number of requests is out of
/// range.
Workload planned_work(const ResolvedJob& job, const ModelFiles& files, int64_t n_requests);

}  // namespace lancet
