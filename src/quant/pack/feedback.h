// How errors of columns are made good by later ones.
#pragma once

#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Factor F of H = `importance` [in, in], damped: H = F D F^T, upper triangular with ones on its diagonal, f64
/// on H's device: column c is to be rounded with the errors of columns k < c, times F[k, c], added. These are GPTQ's
/// updates (with U the upper Cholesky factor of H^-1, F = U^-1 diag(U)), without an inverse. What lies below F's
/// diagonal has no meaning. Columns that H knows nothing of are rounded for themselves. Takes another matrix like it.
/// Throws: NumericError when H is not positive definite; `name`: of the weight.
Tensor feedback_factor(const Tensor& importance, double damping, const std::string& name);

}  // namespace lancet
