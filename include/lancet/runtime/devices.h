// The devices that a job may use, with the memory that it may take on each. They come from the job, from the machine,
// or from what `lancet plan` is told to assume.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/core/run_kinds.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

// The placement says which device and dtype each part of the model and each kind of work has. Only this header and the
// files that implement it name devices.

/// Layers begin..end-1, one after another on one device.
struct Stage {
  static constexpr int64_t kHere = -1;

  at::Device device;
  int64_t begin = 0;
  int64_t end = 0;
  /// The other rank that holds the layers; `device` is then where this rank receives their results.
  int64_t rank = kHere;

  int64_t layers() const { return end - begin; }
  bool is_here() const { return rank == kHere; }
};

class Placement {
 public:
  /// `layer_devices`: one per decoder layer; runs of equal devices are the stages. The embedding is on the device of
  /// the first layer, the final norm and the head are on that of the last. Solves run on the device of their layer,
  /// unless set otherwise.
  Placement(const std::vector<at::Device>& layer_devices, at::ScalarType weight_dtype);
  /// `stages`: consecutive, beginning with layer 0. Layers of other ranks are in stages of their own.
  Placement(std::vector<Stage> stages, at::ScalarType weight_dtype);

  const std::vector<Stage>& stages() const { return stages_; }
  /// Returns the index into stages().
  int64_t stage_of(int64_t layer) const { return stage_of_layer_[static_cast<size_t>(layer)]; }
  const Stage& stage_with(int64_t layer) const { return stages_[static_cast<size_t>(stage_of(layer))]; }
  bool is_here(int64_t layer) const { return stage_with(layer).is_here(); }
  /// Whether all layers are on this rank.
  bool is_whole() const;
  /// Whether embedding, final norm and head are on this rank. They are on all ranks except those that serve layers to
  /// another.
  bool has_ends() const { return has_ends_; }
  void leave_ends_out() { has_ends_ = false; }
  /// Returns the device of the last layer on this rank; nullopt: it has no layer.
  std::optional<at::Device> last_device_here() const;
  /// Sets the device that receives the results of other ranks' layers.
  void put_elsewhere_on(at::Device device);

  at::Device device_of(int64_t layer) const { return stages_[static_cast<size_t>(stage_of(layer))].device; }
  at::Device embed_device() const { return stages_.front().device; }
  at::Device head_device() const { return stages_.back().device; }
  /// The device of a layer's second moments, factor, solves, deltas and exact weights.
  at::Device solve_device(int64_t layer) const { return solve_on_ == SolveOn::kHost ? host() : device_of(layer); }
  /// Where solves run, as decided: never kAuto.
  SolveOn solve_on() const { return solve_on_; }
  void set_solve_on(SolveOn where) { solve_on_ = where; }

  /// Whether no layer is on an accelerator.
  bool is_host_only() const;

  /// The type of model weights and activations.
  at::ScalarType weight_dtype() const { return weight_dtype_; }
  /// The type of optimised values, Adam's state, losses, and master copies of edited weights: f32, or f64 if the model
  /// runs in f64.
  at::ScalarType value_dtype() const;
  /// The type of covariances and solves.
  at::ScalarType solve_dtype() const { return at::kDouble; }

  /// The number of independent batches in flight, so that every stage has one to work on: the number of stages, unless
  /// set otherwise.
  int64_t batches_under_way() const { return batches_under_way_; }
  void set_batches_under_way(int64_t batches) { batches_under_way_ = batches; }

  /// Returns the memory that work may take on a device in addition to the weights, as planned; nullopt: whatever is
  /// free at the time.
  std::optional<int64_t> room_bytes(at::Device device) const;
  void set_room(std::vector<std::pair<at::Device, int64_t>> room) { room_ = std::move(room); }

  /// Allocates host memory [bytes] u8 from which copies to `target` run at full speed: page-locked if `target` is a
  /// GPU.
  static Tensor staging_buffer(int64_t bytes, at::Device target);

  /// Returns the device with this displayed name.
  static at::Device named(const std::string& name);

  /// Returns the device of the same kind with this index.
  static at::Device like(at::Device device, int64_t index);

  /// Returns the host, the device of token ids, requests, random numbers and results.
  static at::Device host();

  /// Returns "cpu", "cuda:0: layers 0-15, cuda:1: layers 16-31" or "cuda:0; solves on cpu".
  std::string description() const;

 private:
  std::vector<Stage> stages_;
  std::vector<int64_t> stage_of_layer_;
  at::ScalarType weight_dtype_;
  int64_t batches_under_way_;
  SolveOn solve_on_ = SolveOn::kDevice;
  bool has_ends_ = true;
  std::vector<std::pair<at::Device, int64_t>> room_;
};

/// Divides the layers over `devices`, in the given order, in contiguous runs that are as equal as possible. A pure
/// function.
Placement plan_placement(int64_t n_layers, std::span<const at::Device> devices, at::ScalarType weight_dtype);

/// Checks the device of a tensor. Throws: PlacementError "what: expected on cuda:1, found on cpu" if `tensor` is not on
/// `expected`.
void check_device(const Tensor& tensor, at::Device expected, const std::string& what);

struct DeviceBudget {
  /// The budget of a device that does not report its memory.
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max() / 4;

  at::Device device;
  int64_t bytes = kUnknown;     ///< memory for weights and work together
  double speed = 1.0;           ///< speed of matrix products, relative to the other devices
  int64_t rank = Stage::kHere;  ///< the rank that has the device, if several ranks hold one model

  bool is_host() const;
};

struct DeviceChoice {
  std::vector<DeviceBudget> devices;            ///< devices in the order of the model's layers
  bool first_if_enough = false;                 ///< use the other devices only for models that do not fit on the first
  int64_t host_bytes = DeviceBudget::kUnknown;  ///< memory that may be used on the host if it is not among the devices
};

/// The devices that exist, from which a job's devices are chosen.
struct DeviceSource {
  int64_t gpus = 0;
  /// Returns a device's free memory; nullopt: the device does not report it. Only a process's own devices are asked,
  /// because the question may use memory there.
  std::function<std::optional<int64_t>(at::Device)> free_bytes;
};

/// Finds the devices of `run.devices`: "auto" (the first GPU if the model fits on it, else all GPUs; without a GPU the
/// CPU), or some of "cpu", "cuda:N" and a registered backend's devices, each with an optional budget ("cuda:0=20GiB").
/// The default budget is the free memory; on a GPU it is 95 % of it, which leaves the rest for the libraries' work
/// space. If several ranks run on a host, each gets a part in the given order: accelerators are divided into runs that
/// are as equal as possible. If several ranks get the same device, such as the CPU, each may use an equal part of its
/// budget. Throws: PlacementError for an unknown or repeated name, a device that is absent, and a budget above what is
/// free.
DeviceChoice find_devices(std::span<const std::string> names, HostShare share = {});
/// Does the same for any machine that `source` describes.
DeviceChoice find_devices(std::span<const std::string> names, HostShare share, const DeviceSource& source);

/// Returns devices that need not exist: "8x80GiB", "80GiB,cpu=64GiB", "24GiB,80GiB". GPUs are numbered in the order of
/// the text; "cpu" needs a budget. Throws: ConfigError for any other text.
DeviceChoice assume_devices(const std::string& text);

/// Divides the layers equally over the devices; if the other devices are only for models that need them, all layers go
/// to the first.
Placement even_placement(int64_t n_layers, const DeviceChoice& choice, at::ScalarType weight_dtype);

/// Whether attention on this device and in this type uses kernels that never store all scores.
bool fuses_attention(at::Device device, at::ScalarType dtype);

/// Whether torch can multiply bf16 and f16 matrices into f32 on this device.
bool has_sixteen_bit_products(at::Device device);

/// Returns the compute capability of a GPU, major * 10 + minor, as the driver reports it; 0: not a GPU, or the driver
/// does not say.
int64_t compute_capability(at::Device device);

/// Measures the speed of each accelerator with a few matrix products of the type (tens of milliseconds). Speeds within
/// a quarter of each other count as equal. The host keeps 1, because its share never depends on its speed.
void measure_speeds(std::vector<DeviceBudget>& devices, at::ScalarType dtype);

/// Groups accelerators whose speeds are within a quarter of the fastest of their group, and sets their speeds to the
/// group's mean, relative to the fastest of all.
void equalize_speeds(std::vector<DeviceBudget>& devices);

}  // namespace lancet
