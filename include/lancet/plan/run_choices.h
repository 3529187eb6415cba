// Choices of a job's `run:` as the rooms take them that act by them.
#pragma once

#include <optional>

#include "lancet/job/job_config.h"
#include "lancet/quant/quantise.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/step_graph.h"

namespace lancet {

/// What matrices that are not edited are quantised by; nullopt: they stay as the checkpoint has them.
std::optional<Quantiser> base_quantiser(const RunOptions& run);
SolveOn solve_on(const RunOptions& run);
LaunchMode step_launch(const RunOptions& run);
HostShare host_share(const RunOptions& run);
LocalRank local_rank(HostShare share);

}  // namespace lancet
