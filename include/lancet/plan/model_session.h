// A model loaded for a job: its weights on the devices that the job has.
#pragma once

#include "lancet/models/causal_lm.h"
#include "lancet/models/model_files.h"
#include "lancet/plan/job_plan.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/kept_matrices.h"

namespace lancet {

/// CPU threads of the process.
void set_threads(const RunOptions& run);

/// Devices, dtype and CPU threads as `run` says, layers as plan_job splits them for `work`; then the weights.
/// `kept`, which may be null, gets the room that the plan leaves it.
/// Throws: PlacementError, before a weight is read, when the work does not fit.
CausalLM load_model(const ModelFiles& files, const RunOptions& run, const Workload& work, KeptMatrices* kept = nullptr);

/// Collective: load_model() on every rank.
CausalLM load_replica(const ModelFiles& files, const RunOptions& run, const Workload& work, Communicator& communicator,
                      KeptMatrices* kept = nullptr);

}  // namespace lancet
