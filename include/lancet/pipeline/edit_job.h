// `lancet edit`: the stages from a job to an edited checkpoint, with everything that was measured on the way.
#pragma once

#include <memory>

#include "lancet/editing/editor.h"
#include "lancet/job/job_config.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// What run_edit_job() checks first of the output folder, those beside it that it writes to, and what must not lie in
/// them. Throws: ConfigError.
void check_output(const JobConfig& job);

/// Collective: every rank with the same job. The output folder, which root writes, appears complete, or not at all;
/// when `accept:` is not met only <dir>.rejected with the report does, and the report's `unmet` is not empty.
/// Statistics stand in root's report alone. Throws: ConfigError, CheckpointError, TokenizerError, PlacementError,
/// NumericError; CollectiveError when another rank failed.
EditReport run_edit_job(const JobConfig& job, Communicator& communicator);
/// Collective: the same by `editor` in the place of the job's, which it watches.
EditReport run_edit_job(const JobConfig& job, Communicator& communicator, std::shared_ptr<const Editor> editor);

}  // namespace lancet
