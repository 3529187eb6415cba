// Loads a model for a job, with its weights on the job's devices.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lancet/models/causal_lm.h"
#include "lancet/models/model_files.h"
#include "lancet/plan/job_plan.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/kept_matrices.h"

namespace lancet {

/// Sets the number of CPU threads of the process.
void set_threads(const RunOptions& run);

/// Loads a model: takes devices, dtype and CPU threads from `run`, divides the layers as plan_job() does for `work`,
/// then loads the weights. `kept` (may be null) gets the memory that the plan leaves for it. Throws: PlacementError
/// when the work does not fit, before a weight is read.
CausalLM load_model(const ModelFiles& files, const RunOptions& run, const Workload& work, KeptMatrices* kept = nullptr);

/// Collective. Calls load_model() on every rank. If the ranks together hold one model (Communicator::model_ranks), each
/// rank loads some of its layers.
CausalLM load_replica(const ModelFiles& files, const RunOptions& run, const Workload& work, Communicator& communicator,
                      KeptMatrices* kept = nullptr);

/// Collective. Runs `work` on every rank if each holds a whole model. If `run` says that the ranks together hold one
/// model, `work` runs only on rank 0, which then is the only rank of the job, while the others compute their layers
/// (load_replica). Returns the result of `work` on every rank. Throws: ConfigError when `run` names another number of
/// ranks.
ExitCode run_on_model_ranks(const RunOptions& run, std::span<const std::string> ignore_config_keys, Communicator& ranks,
                            const std::function<ExitCode(Communicator&)>& work);

}  // namespace lancet
