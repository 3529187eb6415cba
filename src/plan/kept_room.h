// Plans which matrices that solves read are kept in the devices' free memory, from one batch or edit to the next.
// Defined in memory_estimate.cpp.
#pragma once

#include "lancet/plan/job_plan.h"

namespace lancet {

/// Fills the memory that the work leaves free with those matrices: each on its device, or page-locked on the host if
/// its memory is known. If nothing of the plan is on the host, half of its memory stays free. A plan that does not fit
/// keeps none. `fullest`: the stages with as many requests together as memory allows, not as many as the job has.
void plan_kept(const ModelConfig& config, const Workload& work, const DeviceChoice& choice,
               const std::vector<StageEstimate>& fullest, JobPlan& plan);

/// Returns how much memory of each stage's device the work may use.
std::vector<std::pair<at::Device, int64_t>> room_for_work(const std::vector<StageEstimate>& stages);

}  // namespace lancet
