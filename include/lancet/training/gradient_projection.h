// What keeps a trained change of a weight within some directions.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Keeps of a matrix what lies in some of the products of two orthonormal bases: left (allowed o left^T G right)
/// right^T. Empty: keeps all.
struct GradientProjection {
  Tensor left_OO, right_II;  ///< a vector a column
  Tensor allowed_OI;         ///< bool

  /// Moves the bases to where `like` lies, in its type.
  GradientProjection beside(const Tensor& like) const {
    const auto here = [&](const Tensor& basis) { return basis.to(like.options()).contiguous(); };
    return {here(left_OO), here(right_II), allowed_OI.to(like.device())};
  }

  Tensor of(const Tensor& matrix_OI) const {
    if (!allowed_OI.defined()) return matrix_OI;
    const Tensor within_OI = left_OO.t().matmul(matrix_OI).matmul(right_II).mul(allowed_OI);
    return left_OO.matmul(within_OI).matmul(right_II.t());
  }
};

}  // namespace lancet
