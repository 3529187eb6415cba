#include "lancet/runtime/placement.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <regex>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

int64_t gpu_count() { return at::hasCUDA() ? static_cast<int64_t>(at::detail::getCUDAHooks().deviceCount()) : 0; }

at::Device parse_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  if (name == "auto") return gpu_count() > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  std::smatch match;
  if (!std::regex_match(name, match, std::regex("cuda:([0-9]{1,3})")))
    throw PlacementError(cat("run.devices: '", name, "': expected auto, cpu or cuda:N"));
  const int64_t index = std::stoll(match[1]);
  if (index >= gpu_count())
    throw PlacementError(
        cat("run.devices: '", name, "': this machine shows ", gpu_count(), " GPU(s). Use cpu or auto"));
  return {at::kCUDA, static_cast<at::DeviceIndex>(index)};
}

}  // namespace

Placement::Placement(std::vector<at::Device> layer_devices, at::ScalarType weight_dtype)
    : layer_devices_(std::move(layer_devices)), weight_dtype_(weight_dtype) {
  if (layer_devices_.empty()) throw PlacementError("placement: a model needs at least one layer");
}

at::ScalarType Placement::value_dtype() const { return weight_dtype_ == at::kDouble ? at::kDouble : at::kFloat; }

bool Placement::is_host_only() const {
  return std::all_of(layer_devices_.begin(), layer_devices_.end(), [](at::Device device) { return device == host(); });
}

at::Device Placement::host() { return at::kCPU; }

Tensor Placement::staging_buffer(int64_t bytes, at::Device target) {
  return at::empty({bytes}, at::TensorOptions(at::kByte).device(host()).pinned_memory(target.is_cuda()));
}

std::string Placement::description() const {
  if (layer_devices_.front() == layer_devices_.back()) return layer_devices_.front().str();
  std::vector<std::string> stages;
  for (size_t begin = 0; begin < layer_devices_.size();) {
    size_t end = begin;
    while (end < layer_devices_.size() && layer_devices_[end] == layer_devices_[begin]) ++end;
    stages.push_back(cat(layer_devices_[begin].str(), ": layers ", begin, "-", end - 1));
    begin = end;
  }
  return join(stages);
}

std::vector<at::Device> parse_devices(std::span<const std::string> names) {
  if (names.empty()) throw PlacementError("run.devices: empty list: expected auto, cpu or cuda:N");
  if (names.size() > 1)
    throw PlacementError(cat("run.devices: ", names.size(),
                             " devices: expected one. Splitting a model over several devices is ",
                             "not supported by this version; name the one to use"));
  std::vector<at::Device> devices;
  for (const std::string& name : names) devices.push_back(parse_device(name));
  return devices;
}

Placement plan_placement(int64_t n_layers, std::span<const at::Device> devices, at::ScalarType weight_dtype) {
  const int64_t n_devices = static_cast<int64_t>(devices.size());
  if (n_devices == 0 || n_devices > n_layers)
    throw PlacementError(cat("placement: ", n_layers, " layers cannot be split over ", n_devices, " devices"));
  std::vector<at::Device> layer_devices;
  for (int64_t layer = 0; layer < n_layers; ++layer)
    layer_devices.push_back(devices[static_cast<size_t>(layer * n_devices / n_layers)]);
  return {std::move(layer_devices), weight_dtype};
}

void check_device(const Tensor& tensor, at::Device expected, const std::string& what) {
  if (tensor.device() != expected)
    throw PlacementError(cat(what, ": expected on ", expected.str(), ", found on ", tensor.device().str()));
}

}  // namespace lancet
