// Cholesky factors of matrices so large that a second one of their size must not exist.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Lower factor of a symmetric matrix, or of each of several [E, W, W], in the matrix's own memory; undefined when one
/// is not positive definite.
Tensor cholesky_in_place(Tensor matrix);

}  // namespace lancet
