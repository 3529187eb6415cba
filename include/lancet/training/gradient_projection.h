// What a trained change of a weight goes through, on its way or from its gradient.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Keeps of a matrix what lies in some of the products of two orthonormal bases: left (allowed o left^T G right)
/// right^T. Or takes it times a symmetric matrix: G scale. Empty: keeps all.
struct GradientProjection {
  Tensor left_OO = {}, right_II = {};  ///< a vector a column
  Tensor allowed_OI = {};              ///< bool
  Tensor scale_II = {};  ///< undefined beside bases; of experts' inputs, side by side, its blocks [E, W, W]

  /// Moves bases or scale to where `like` lies, in its type.
  GradientProjection beside(const Tensor& like) const {
    const auto here = [&](const Tensor& matrix) {
      return matrix.defined() ? matrix.to(like.options()).contiguous() : matrix;
    };
    return {here(left_OO), here(right_II), allowed_OI.defined() ? allowed_OI.to(like.device()) : allowed_OI,
            here(scale_II)};
  }

  Tensor of(const Tensor& matrix_OI) const {
    if (scale_II.defined() && scale_II.dim() == 3) {
      const Tensor blocks_EOW = matrix_OI.unflatten(1, {scale_II.size(0), -1}).transpose(0, 1);
      return blocks_EOW.matmul(scale_II).transpose(0, 1).flatten(1);
    }
    if (scale_II.defined()) return matrix_OI.matmul(scale_II);
    if (!allowed_OI.defined()) return matrix_OI;
    const Tensor within_OI = left_OO.t().matmul(matrix_OI).matmul(right_II).mul(allowed_OI);
    return left_OO.matmul(within_OI).matmul(right_II.t());
  }
};

}  // namespace lancet
