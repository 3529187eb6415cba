// A projection of a weight's gradient or of its trained change.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Keeps the components of a matrix in some products of two orthonormal bases: left (allowed o left^T G right) right^T.
/// Or multiplies it by a symmetric matrix: G scale. If everything is undefined, it keeps the whole matrix.
struct GradientProjection {
  Tensor left_OO = {}, right_II = {};  ///< one basis vector per column
  Tensor allowed_OI = {};              ///< bool
  Tensor scale_II = {};  ///< undefined if there are bases; for experts' inputs, concatenated, its blocks [E, W, W]

  /// Returns a copy with bases or scale on the device of `like` and in its type.
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
