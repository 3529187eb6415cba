// A model loaded for a job: its weights on the devices that the job has.
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

/// CPU threads of the process.
void set_threads(const RunOptions& run);

/// Devices, dtype and CPU threads as `run` says, layers as plan_job splits them for `work`; then the weights.
/// `kept`, which may be null, gets the room that the plan leaves it.
/// Throws: PlacementError, before a weight is read, when the work does not fit.
CausalLM load_model(const ModelFiles& files, const RunOptions& run, const Workload& work, KeptMatrices* kept = nullptr);

/// Collective: load_model() on every rank; where they hold one model (Communicator::model_ranks), each some layers.
CausalLM load_replica(const ModelFiles& files, const RunOptions& run, const Workload& work, Communicator& communicator,
                      KeptMatrices* kept = nullptr);

/// Collective: runs `work` on every rank, where each holds a whole model. Where `run` says that they hold one together,
/// on rank 0 alone, as the only rank of a job, while the others compute their layers (load_replica). Returns what the
/// work does, everywhere. Throws: ConfigError for another number of ranks than that.
ExitCode run_on_model_ranks(const RunOptions& run, std::span<const std::string> ignore_config_keys, Communicator& ranks,
                            const std::function<ExitCode(Communicator&)>& work);

}  // namespace lancet
