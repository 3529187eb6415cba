#include "lancet/runtime/placement.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "device_text.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

Placement::Placement(const std::vector<at::Device>& layer_devices, at::ScalarType weight_dtype)
    : weight_dtype_(weight_dtype) {
  if (layer_devices.empty()) throw PlacementError("placement: a model needs at least one layer");
  for (const at::Device device : layer_devices) {
    const auto layer = static_cast<int64_t>(stage_of_layer_.size());
    if (stages_.empty() || stages_.back().device != device) stages_.push_back({device, layer, layer});
    ++stages_.back().end;
    stage_of_layer_.push_back(static_cast<int64_t>(stages_.size()) - 1);
  }
  batches_under_way_ = static_cast<int64_t>(stages_.size());
}

Placement::Placement(std::vector<Stage> stages, at::ScalarType weight_dtype)
    : stages_(std::move(stages)), weight_dtype_(weight_dtype) {
  for (const Stage& stage : stages_) {
    if (stage.begin != std::ssize(stage_of_layer_) || stage.layers() < 1)
      throw PlacementError(cat("placement: a stage of layers ", stage.begin, "-", stage.end - 1,
                               ": expected layers from ", stage_of_layer_.size(), " on"));
    stage_of_layer_.insert(stage_of_layer_.end(), static_cast<size_t>(stage.layers()), &stage - stages_.data());
  }
  if (stages_.empty()) throw PlacementError("placement: a model needs at least one layer");
  batches_under_way_ = static_cast<int64_t>(stages_.size());
}

bool Placement::is_whole() const { return std::ranges::all_of(stages_, &Stage::is_here); }

std::optional<at::Device> Placement::last_device_here() const {
  const auto last = std::find_if(stages_.rbegin(), stages_.rend(), [](const Stage& stage) { return stage.is_here(); });
  return last == stages_.rend() ? std::nullopt : std::optional(last->device);
}

void Placement::put_elsewhere_on(at::Device device) {
  for (Stage& stage : stages_)
    if (!stage.is_here()) stage.device = device;
}

at::ScalarType Placement::value_dtype() const { return weight_dtype_ == at::kDouble ? at::kDouble : at::kFloat; }

bool Placement::is_host_only() const {
  return std::all_of(stages_.begin(), stages_.end(), [](const Stage& stage) { return stage.device == host(); });
}

std::optional<int64_t> Placement::room_bytes(at::Device device) const {
  const auto at = std::find_if(room_.begin(), room_.end(), [&](const auto& entry) { return entry.first == device; });
  return at == room_.end() ? std::nullopt : std::optional(at->second);
}

at::Device Placement::host() { return at::kCPU; }

Tensor Placement::staging_buffer(int64_t bytes, at::Device target) {
  return at::empty({bytes}, at::TensorOptions(at::kByte).device(host()).pinned_memory(target.is_cuda()));
}

at::Device Placement::named(const std::string& name) { return at::Device(name); }

at::Device Placement::like(at::Device device, int64_t index) {
  return {device.type(), static_cast<at::DeviceIndex>(index)};
}

std::string Placement::description() const {
  const std::string solves = solve_on_ == SolveOn::kHost && !is_host_only() ? "; solves on cpu" : "";
  if (stages_.size() == 1 && is_whole()) return device_text(stages_.front().device) + solves;
  std::vector<std::string> parts;
  for (const Stage& stage : stages_)
    parts.push_back(cat(stage.is_here() ? device_text(stage.device) : cat("rank ", stage.rank), ": layers ",
                        stage.begin, "-", stage.end - 1));
  return join(parts) + solves;
}

Placement plan_placement(int64_t n_layers, std::span<const at::Device> devices, at::ScalarType weight_dtype) {
  const int64_t n_devices = static_cast<int64_t>(devices.size());
  if (n_devices == 0 || n_devices > n_layers)
    throw PlacementError(cat("placement: ", n_layers, " layers cannot be split over ", n_devices, " devices"));
  std::vector<at::Device> layer_devices;
  for (int64_t layer = 0; layer < n_layers; ++layer)
    layer_devices.push_back(devices[static_cast<size_t>(layer * n_devices / n_layers)]);
  return {layer_devices, weight_dtype};
}

void check_device(const Tensor& tensor, at::Device expected, const std::string& what) {
  if (tensor.device() != expected)
    throw PlacementError(
        cat(what, ": expected on ", device_text(expected), ", found on ", device_text(tensor.device())));
}

}  // namespace lancet
