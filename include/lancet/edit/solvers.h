// The closed-form updates of locate-then-edit methods: plain algebra in f64 on one device; knows no model.
// Source: MEMIT (Meng et al., arXiv 2210.07229, eq. 14). Differs from the reference: no LU of the d_in x d_in system; C
// is factored once, without lambda (chol(lambda C) = sqrt(lambda) chol(C)), keys are whitened with that factor, and the
// system is solved in the smaller of the two spaces. C itself is not needed in either.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lancet/edit/weight_update.h"

namespace lancet {

/// L of C + ridge * (trace(C) / F) * I = L L^T: [F, F] f64, column-major, as LAPACK wants it. `covariance` makes C
/// [F, F] f64: it is factored in its own memory, so that no second matrix of that size exists, and is asked for again
/// only to say why it has no factor.
/// Throws: NumericError naming `where`, the smallest eigenvalue and the statistics.ridge that would make C definite.
Tensor factor_covariance(const std::function<Tensor()>& covariance, double ridge, const std::string& where);

struct RidgeProblem {
  Tensor lower_FF;               ///< L, C = L L^T: lower triangle, row- or column-major
  double covariance_weight = 0;  ///< lambda > 0
  Tensor keys_FN;                ///< new keys
  Tensor history_FM;             ///< keys of earlier batches, to be left as they are; undefined: none
  Tensor residuals_DN;           ///< wanted change of each key's value
};

enum class SolveSpace {
  kAuto,    ///< the smaller
  kKeys,    ///< [M + N, M + N] system: I + Z^T Z, Z = (lambda C)^(-1/2) [H, K]
  kWeights  ///< [F, F] system: I + Z Z^T
};

/// Delta = R K^T (lambda C + H H^T + K K^T)^{-1}, as left = R, right = K^T (...)^{-1}: one column per new key.
/// Throws: NumericError when the keys are not finite.
LowRankDelta solve_ridge(const RidgeProblem& problem, SolveSpace space = SolveSpace::kAuto);

}  // namespace lancet
