// The weights of one layer.
#pragma once

#include <array>

#include "lancet/models/weight_kind.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Undefined where the model has none. Matrices are [out, in].
class LayerWeights {
 public:
  const Tensor& operator[](WeightKind kind) const { return by_kind_[static_cast<size_t>(kind)]; }
  Tensor& operator[](WeightKind kind) { return by_kind_[static_cast<size_t>(kind)]; }

 private:
  std::array<Tensor, kWeightKinds> by_kind_;
};

}  // namespace lancet
