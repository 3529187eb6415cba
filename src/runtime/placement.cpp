#include "lancet/runtime/placement.h"

#include <ATen/ops/empty.h>

#include <algorithm>

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

at::Device Placement::like(at::Device device, int64_t index) {
  return {device.type(), static_cast<at::DeviceIndex>(index)};
}

std::string Placement::description() const {
  const std::string solves = solve_on_ == SolveOn::kHost && !is_host_only() ? "; solves on cpu" : "";
  if (stages_.size() == 1) return device_text(stages_.front().device) + solves;
  std::vector<std::string> parts;
  for (const Stage& stage : stages_)
    parts.push_back(cat(device_text(stage.device), ": layers ", stage.begin, "-", stage.end - 1));
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
