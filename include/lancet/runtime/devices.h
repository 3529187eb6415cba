// The devices that a job may use, with the memory it may take on each: what the job names, what the machine shows, or
// what `lancet plan` is told to assume.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/run_kinds.h"
#include "lancet/runtime/placement.h"

namespace lancet {

struct DeviceBudget {
  /// Budget of a device that does not say how much memory it has.
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max() / 4;

  at::Device device;
  int64_t bytes = kUnknown;     ///< memory for weights and work together
  double speed = 1.0;           ///< speed of matrix products, relative to the others'
  int64_t rank = Stage::kHere;  ///< the rank whose device it is, where several hold one model

  bool is_host() const;
};

struct DeviceChoice {
  std::vector<DeviceBudget> devices;            ///< devices in the order that the model's layers go through them
  bool first_if_enough = false;                 ///< the others are for models that do not fit on the first
  int64_t host_bytes = DeviceBudget::kUnknown;  ///< what may be taken of the host where it is none of them
};

/// What devices are chosen from.
struct DeviceSource {
  int64_t gpus = 0;
  /// nullopt: the device does not say. Asked of a process's own devices alone: the question may cost memory there.
  std::function<std::optional<int64_t>(at::Device)> free_bytes;
};

/// `run.devices`: "auto" (the first GPU where the model fits on it, else all GPUs; without a GPU the CPU), or some of
/// "cpu", "cuda:N" and a registered backend's devices, each with a budget if wanted ("cuda:0=20GiB"). Without one it
/// is what is free: of a GPU 95 %, the rest for the libraries' work space.
/// Of several ranks on a host each gets its part, in the order given: accelerators are dealt out in runs, as equal in
/// number as can be. Of a device that several ranks get, as of the CPU, each may take an equal part of the budget.
/// Throws: PlacementError for a name that is none of these or stands twice, a device that is absent, and a budget above
/// what is free.
DeviceChoice find_devices(std::span<const std::string> names, HostShare share = {});
/// Finds devices likewise, on any machine.
DeviceChoice find_devices(std::span<const std::string> names, HostShare share, const DeviceSource& source);

/// Devices that need not be there: "8x80GiB", "80GiB,cpu=64GiB", "24GiB,80GiB": GPUs are numbered as they come; "cpu"
/// needs a budget. Throws: ConfigError for anything else.
DeviceChoice assume_devices(const std::string& text);

/// Equal numbers of layers over the devices, or all on the first where the others are only for models that need them.
Placement even_placement(int64_t n_layers, const DeviceChoice& choice, at::ScalarType weight_dtype);

/// Whether attention there, in this type, runs through kernels that never hold all scores.
bool fuses_attention(at::Device device, at::ScalarType dtype);

/// Whether torch multiplies matrices of bf16 and f16 into f32 there.
bool has_sixteen_bit_products(at::Device device);

/// Compute capability of a GPU, major * 10 + minor, as the driver says; 0: no GPU, or the driver does not say.
int64_t compute_capability(at::Device device);

/// Measures each accelerator with a few products of matrices of the type (tens of milliseconds); devices within a
/// quarter of each other count as equal. The host keeps 1: how much it gets never depends on its speed.
void measure_speeds(std::vector<DeviceBudget>& devices, at::ScalarType dtype);

/// Speeds within a quarter of the fastest of their group become the group's mean.
void equalize_speeds(std::vector<DeviceBudget>& devices);

}  // namespace lancet
