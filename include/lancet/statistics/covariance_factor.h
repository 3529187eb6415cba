// The Cholesky factor of a layer's covariance, which every ridge solve on that layer begins with.
#pragma once

#include <functional>
#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// L of C + ridge * (trace(C) / F) * I = L L^T: [F, F] f64, column-major, as LAPACK wants it. `covariance` makes C
/// [F, F] f64, or of experts its blocks [E, W, W], and so is L: it is factored in its own memory, so that no second
/// matrix of that size exists, and is asked for again only to say why it has no factor. Throws: NumericError naming
/// `where`, the expert, the smallest eigenvalue and the statistics.ridge that would make C definite.
Tensor factor_covariance(const std::function<Tensor()>& covariance, double ridge, const std::string& where);

/// trace(C) / F of a covariance, or of one's blocks.
double mean_diagonal(const Tensor& moments);

}  // namespace lancet
