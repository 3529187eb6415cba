// The devices that a job may use, with the memory it may take on each: what the job names, what the machine shows, or
// what `lancet plan` is told to assume.
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

// Which device and dtype each part of the model, and each kind of work, lives on. Nothing but this header and the files
// behind it names devices.

/// Layers begin..end-1, one after another on one device.
struct Stage {
  static constexpr int64_t kHere = -1;

  at::Device device;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t rank =
      kHere;  ///< the other rank that holds the layers; `device` then is where this one has what comes of them

  int64_t layers() const { return end - begin; }
  bool is_here() const { return rank == kHere; }
};

class Placement {
 public:
  /// `layer_devices`: one per decoder layer; runs of equal devices are the stages. The embedding lies with the first
  /// layer, the final norm and the head with the last, solves run with the layer they are for, unless set otherwise.
  Placement(const std::vector<at::Device>& layer_devices, at::ScalarType weight_dtype);
  /// Stages that follow one another, the first from layer 0 on; those of layers elsewhere are stages of their own.
  Placement(std::vector<Stage> stages, at::ScalarType weight_dtype);

  const std::vector<Stage>& stages() const { return stages_; }
  /// Index into stages().
  int64_t stage_of(int64_t layer) const { return stage_of_layer_[static_cast<size_t>(layer)]; }
  const Stage& stage_with(int64_t layer) const { return stages_[static_cast<size_t>(stage_of(layer))]; }
  bool is_here(int64_t layer) const { return stage_with(layer).is_here(); }
  /// Whether all layers are.
  bool is_whole() const;
  /// Whether embedding, final norm and head are here: on all ranks but those that serve layers to another.
  bool has_ends() const { return has_ends_; }
  void leave_ends_out() { has_ends_ = false; }
  /// The device of the last layer that is here; nullopt: none is.
  std::optional<at::Device> last_device_here() const;
  /// What comes of other ranks' layers will lie on `device`.
  void put_elsewhere_on(at::Device device);

  at::Device device_of(int64_t layer) const { return stages_[static_cast<size_t>(stage_of(layer))].device; }
  at::Device embed_device() const { return stages_.front().device; }
  at::Device head_device() const { return stages_.back().device; }
  /// Device of a layer's second moments, factor, solves, deltas and exact weights.
  at::Device solve_device(int64_t layer) const { return solve_on_ == SolveOn::kHost ? host() : device_of(layer); }
  /// Place of solves, as decided: not kAuto.
  SolveOn solve_on() const { return solve_on_; }
  void set_solve_on(SolveOn where) { solve_on_ = where; }

  /// No layer lies on an accelerator.
  bool is_host_only() const;

  /// Model weights and activations.
  at::ScalarType weight_dtype() const { return weight_dtype_; }
  /// Optimised values, Adam's state, losses, masters of edited weights: f32, or f64 when the model runs in f64.
  at::ScalarType value_dtype() const;
  /// Covariances and solves.
  at::ScalarType solve_dtype() const { return at::kDouble; }

  /// How many independent batches are under way at a time, so that every stage has one to work on: the number of
  /// stages, unless set otherwise.
  int64_t batches_under_way() const { return batches_under_way_; }
  void set_batches_under_way(int64_t batches) { batches_under_way_ = batches; }

  /// What work may take on a device beside the weights, as planned; nullopt: whatever is free at the time.
  std::optional<int64_t> room_bytes(at::Device device) const;
  void set_room(std::vector<std::pair<at::Device, int64_t>> room) { room_ = std::move(room); }

  /// Host memory [bytes] u8 that `target` copies from at its full rate: page-locked where `target` is a GPU.
  static Tensor staging_buffer(int64_t bytes, at::Device target);

  /// The device that is shown as `name`.
  static at::Device named(const std::string& name);

  /// Another device of the same kind.
  static at::Device like(at::Device device, int64_t index);

  /// Device of token ids, requests, random numbers and results.
  static at::Device host();

  /// "cpu", "cuda:0: layers 0-15, cuda:1: layers 16-31", "cuda:0; solves on cpu".
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

/// Contiguous runs of layers, as equal in number as possible, over `devices` in the order given. Pure.
Placement plan_placement(int64_t n_layers, std::span<const at::Device> devices, at::ScalarType weight_dtype);

/// Throws: PlacementError "what: expected on cuda:1, found on cpu" unless `tensor` lies on `expected`.
void check_device(const Tensor& tensor, at::Device expected, const std::string& what);

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
