// The weights of one layer.
#pragma once

#include <array>
#include <span>

#include "lancet/models/quantised_linear.h"
#include "lancet/models/weight_kind.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

// Weights that read the same input lie one after the other in memory, so that one product takes all of them. Each stays
// a tensor of its own, a view: files, edits and exports see no difference, and nothing is held twice.

/// Kinds whose weights are neighbours, in their order in memory.
using NeighbourKinds = std::span<const WeightKind>;

inline constexpr std::array kQueryKeyValue{WeightKind::kQuery, WeightKind::kKey, WeightKind::kValue};
inline constexpr std::array kQueryKeyValueBias{WeightKind::kQueryBias, WeightKind::kKeyBias, WeightKind::kValueBias};
inline constexpr std::array kGateUp{WeightKind::kGate, WeightKind::kUp};
inline constexpr std::array kGateUpBias{WeightKind::kGateBias, WeightKind::kUpBias};

/// Returns the rows of all `parts` as one view. Undefined where they do not lie so, or where one of them learns.
Tensor joined_neighbours(std::span<const Tensor* const> parts);

/// Matrices are [out, in], in full precision or quantised.
class LayerWeights {
 public:
  /// Undefined where the model has none, or has it quantised.
  const Tensor& operator[](WeightKind kind) const { return full_[static_cast<size_t>(kind)]; }
  Tensor& operator[](WeightKind kind) { return full_[static_cast<size_t>(kind)]; }
  /// `matrix` outlives this.
  void set_quantised(WeightKind kind, const QuantisedLinear& matrix) {
    quantised_[static_cast<size_t>(kind)] = &matrix;
  }

  /// x [..., in] -> x W^T [..., out].
  Tensor linear(const Tensor& x, WeightKind weight) const { return product(x, weight, {}); }
  /// Adds a bias too, where the model has it.
  Tensor linear(const Tensor& x, WeightKind weight, WeightKind bias) const { return product(x, weight, (*this)[bias]); }
  /// One product with neighbours, [..., all their outputs]. Undefined where they do not lie side by side in full
  /// precision, or where one of them learns: linear() takes each.
  Tensor linear_of_neighbours(const Tensor& x, NeighbourKinds weights, NeighbourKinds biases) const;
  /// Multiplies with one expert's part of gates, ups or downs; `width`: of its keys; `bias`: its own, may be undefined.
  Tensor linear_of_expert(const Tensor& x, WeightKind weight, int64_t expert, int64_t width,
                          const Tensor& bias = {}) const;

 private:
  Tensor joined(NeighbourKinds kinds) const;
  Tensor product(const Tensor& x, WeightKind weight, const Tensor& bias) const;

  std::array<Tensor, kWeightKinds> full_;
  std::array<const QuantisedLinear*, kWeightKinds> quantised_ = {};
};

}  // namespace lancet
