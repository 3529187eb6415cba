// The only place that names devices: which device and dtype each part of the model, and each kind of work, lives on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

class Placement {
 public:
  /// `layer_devices`: one per decoder layer; runs of equal devices are the stages. The embedding lies with the first
  /// layer, the final norm and the head with the last, solves run with the layer they are for.
  Placement(std::vector<at::Device> layer_devices, at::ScalarType weight_dtype);

  at::Device device_of(int64_t layer) const { return layer_devices_[static_cast<size_t>(layer)]; }
  at::Device embed_device() const { return layer_devices_.front(); }
  at::Device head_device() const { return layer_devices_.back(); }
  at::Device solve_device(int64_t layer) const { return device_of(layer); }

  /// No layer lies on an accelerator.
  bool is_host_only() const;

  /// Model weights and activations.
  at::ScalarType weight_dtype() const { return weight_dtype_; }
  /// Optimised values, Adam's state, losses, masters of edited weights: f32, or f64 when the model runs in f64.
  at::ScalarType value_dtype() const;
  /// Covariances and solves.
  at::ScalarType solve_dtype() const { return at::kDouble; }

  /// Host memory [bytes] u8 that `target` copies from at its full rate: page-locked where `target` is a GPU.
  static Tensor staging_buffer(int64_t bytes, at::Device target);

  /// Where token ids, requests, random numbers and results lie.
  static at::Device host();

  /// "cpu", "cuda:0: layers 0-15, cuda:1: layers 16-31".
  std::string description() const;

 private:
  std::vector<at::Device> layer_devices_;
  at::ScalarType weight_dtype_;
};

/// The devices a job names: "auto" (the first GPU, else the CPU), "cpu", "cuda:N".
/// Throws: PlacementError for a name that is none of these, a device that is absent, and, until model-parallel jobs are
/// supported, more than one device.
std::vector<at::Device> parse_devices(std::span<const std::string> names);

/// Contiguous runs of layers, as equal in number as possible, over `devices` in the order given. Pure.
Placement plan_placement(int64_t n_layers, std::span<const at::Device> devices, at::ScalarType weight_dtype);

/// Throws: PlacementError "what: expected cuda:1, found cpu" unless `tensor` lies on `expected`.
void check_device(const Tensor& tensor, at::Device expected, const std::string& what);

}  // namespace lancet
