// Solves with the factor L of C = L L^T, which is one matrix, or has a diagonal block [E, W, W] for each expert.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Solves L x = right.
Tensor solve_lower(const Tensor& lower, const Tensor& right);

/// Solves L^T x = right.
Tensor solve_transposed(const Tensor& lower, const Tensor& right);

}  // namespace lancet
