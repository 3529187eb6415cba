// The weights of one layer.
#pragma once

#include <array>
#include <span>

#include "lancet/models/quantised_linear.h"
#include "lancet/models/weight_kind.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

// Weights that read the same input are adjacent in memory, so that one product can use all of them. Each is still a
// tensor of its own, which is a view: files, edits and exports see no difference, and nothing is stored twice.

/// The kinds of weights that are neighbours, in their order in memory.
using NeighbourKinds = std::span<const WeightKind>;

inline constexpr std::array kQueryKeyValue{WeightKind::kQuery, WeightKind::kKey, WeightKind::kValue};
inline constexpr std::array kQueryKeyValueBias{WeightKind::kQueryBias, WeightKind::kKeyBias, WeightKind::kValueBias};
inline constexpr std::array kGateUp{WeightKind::kGate, WeightKind::kUp};
inline constexpr std::array kGateUpBias{WeightKind::kGateBias, WeightKind::kUpBias};

/// Returns the rows of all `parts` as one view; undefined if they are not adjacent, or if one of them requires a
/// gradient.
Tensor joined_neighbours(std::span<const Tensor* const> parts);

/// The weights. Matrices are [out, in], in full precision or quantised.
class LayerWeights {
 public:
  /// Undefined if the model has no such weight, or has it quantised.
  const Tensor& operator[](WeightKind kind) const { return full_[static_cast<size_t>(kind)]; }
  Tensor& operator[](WeightKind kind) { return full_[static_cast<size_t>(kind)]; }
  /// `matrix` must outlive this object.
  void set_quantised(WeightKind kind, const QuantisedLinear& matrix) {
    quantised_[static_cast<size_t>(kind)] = &matrix;
  }

  /// Computes x [..., in] -> x W^T [..., out].
  Tensor linear(const Tensor& x, WeightKind weight) const { return product(x, weight, {}); }
  /// Adds a bias, too, if the model has one.
  Tensor linear(const Tensor& x, WeightKind weight, WeightKind bias) const { return product(x, weight, (*this)[bias]); }
  /// Computes one product with neighbours: [..., all their outputs]. Returns undefined if they are not adjacent in full
  /// precision, or if one of them requires a gradient; then linear() is used for each.
  Tensor linear_of_neighbours(const Tensor& x, NeighbourKinds weights, NeighbourKinds biases) const;
  /// Multiplies by one expert's part of gates, ups or downs. `width`: size of its keys. `bias`: the expert's bias, may
  /// be undefined.
  Tensor linear_of_expert(const Tensor& x, WeightKind weight, int64_t expert, int64_t width,
                          const Tensor& bias = {}) const;

 private:
  Tensor joined(NeighbourKinds kinds) const;
  Tensor product(const Tensor& x, WeightKind weight, const Tensor& bias) const;

  std::array<Tensor, kWeightKinds> full_;
  std::array<const QuantisedLinear*, kWeightKinds> quantised_ = {};
};

}  // namespace lancet
