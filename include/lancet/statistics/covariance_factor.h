// The Cholesky factor of a layer's covariance, which every ridge solve on that layer begins with.
#pragma once

#include <functional>
#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// L of C + ridge * (trace(C) / F) * I = L L^T: [F, F] f64, column-major, as LAPACK wants it. `covariance` makes C
/// [F, F] f64: it is factored in its own memory, so that no second matrix of that size exists, and is asked for again
/// only to say why it has no factor.
/// Throws: NumericError naming `where`, the smallest eigenvalue and the statistics.ridge that would make C definite.
Tensor factor_covariance(const std::function<Tensor()>& covariance, double ridge, const std::string& where);

}  // namespace lancet
