#include "kept_room.h"

#include <algorithm>

namespace lancet {

void plan_kept(const ModelConfig& config, const Workload& work, const DeviceChoice& choice,
               const std::vector<StageEstimate>& fullest, JobPlan& plan) {
  if (!plan.fits()) return;
  int64_t left_out = 0;
  const auto keep_on = [&](StageEstimate& part, const StageEstimate& full) {
    const SolveMatrices wanted = solve_matrices(config, work, part.stage);
    const int64_t count = matrices_with_room(full, wanted);
    part.kept = count * wanted.bytes;
    if (part.stage.device != Placement::host()) left_out += wanted.count - count;
  };
  for (size_t i = 0; i < plan.stages.size(); ++i) keep_on(plan.stages[i], fullest[i]);
  if (plan.host) keep_on(*plan.host, *plan.host);
  if (left_out == 0) return;
  const SolveMatrices locked{left_out, KeptMatrices::locked_bytes(8 * config.largest_keys().moments())};
  const auto staged = std::ranges::find(plan.stages, Placement::host(), [](const auto& s) { return s.stage.device; });
  if (staged != plan.stages.end()) {
    StageEstimate beside = fullest[static_cast<size_t>(staged - plan.stages.begin())];
    beside.budget -= staged->kept;
    staged->kept += matrices_with_room(beside, locked) * locked.bytes;
  } else if (choice.host_bytes < DeviceBudget::kUnknown) {
    const int64_t count = std::min(left_out, choice.host_bytes / 2 / locked.bytes);
    if (count == 0) return;
    plan.host = StageEstimate{.stage = {Placement::host(), 0, 0}};
    plan.host->kept = count * locked.bytes;
    plan.host->budget = choice.host_bytes;
  }
}

std::vector<std::pair<at::Device, int64_t>> room_for_work(const std::vector<StageEstimate>& stages) {
  std::vector<std::pair<at::Device, int64_t>> room;
  for (const StageEstimate& s : stages) {
    const int64_t bytes = std::max<int64_t>(0, s.budget - s.weights - s.edited - s.unpacked - s.kept);
    const auto known = std::ranges::find(room, s.stage.device, [](const auto& entry) { return entry.first; });
    if (known == room.end())
      room.emplace_back(s.stage.device, bytes);
    else  // another rank's of the same name
      known->second = std::min(known->second, bytes);
  }
  return room;
}

KeptMatrices::Room JobPlan::kept_room() const {
  KeptMatrices::Room room;
  for (const StageEstimate& part : parts())
    if (part.stage.is_here()) room.emplace_back(part.stage.device, part.kept);
  return room;
}

}  // namespace lancet
