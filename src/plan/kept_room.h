// What of the devices' memory is left for the matrices that solves read, to be kept from one batch or edit to the next.
// Defined in memory_estimate.cpp.
#pragma once

#include "lancet/plan/job_plan.h"

namespace lancet {

/// Fills what work leaves with those matrices: each on its device, or page-locked on a host that is known, of which
/// half is left alone where nothing of it is planned. A plan that does not fit keeps none.
/// `fullest`: the stages with as many requests together as memory, and not the job's number of them, allows.
void plan_kept(const ModelConfig& config, const Workload& work, const DeviceChoice& choice,
               const std::vector<StageEstimate>& fullest, JobPlan& plan);

/// Returns what work may take of each stage's device.
std::vector<std::pair<at::Device, int64_t>> room_for_work(const std::vector<StageEstimate>& stages);

}  // namespace lancet
