// Solves with the factor L of C = L L^T: one matrix, or of experts its blocks [E, W, W] on a diagonal.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// L x = right.
Tensor solve_lower(const Tensor& lower, const Tensor& right);

/// L^T x = right.
Tensor solve_transposed(const Tensor& lower, const Tensor& right);

}  // namespace lancet
