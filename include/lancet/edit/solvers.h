// The closed-form updates of locate-then-edit methods: plain algebra in f64 on one device; knows no model.
// Source: MEMIT (Meng et al., arXiv 2210.07229, eq. 14). Differs from the reference: no LU of the d_in x d_in system; C
// is factored once, without lambda (chol(lambda C) = sqrt(lambda) chol(C)), and the system is solved in the smaller of
// the two spaces.
#pragma once

#include <cstdint>
#include <string>

#include "lancet/edit/weight_update.h"

namespace lancet {

/// A layer's covariance C = E[k k^T] (with the ridge added) and its Cholesky factor, f64, both [F, F].
struct CovarianceFactor {
  Tensor covariance_FF;
  Tensor lower_FF;
};

/// C + ridge * (trace(C) / F) * I = L L^T.
/// Throws: NumericError naming `where`, the smallest eigenvalue and the statistics.ridge that would make C definite.
CovarianceFactor factor_covariance(const Tensor& covariance_FF, double ridge, const std::string& where);

struct RidgeProblem {
  const CovarianceFactor& covariance;
  double covariance_weight = 0;  ///< lambda > 0
  Tensor keys_FN;                ///< new keys
  Tensor history_FM;             ///< keys of earlier batches, to be left as they are; undefined: none
  Tensor residuals_DN;           ///< wanted change of each key's value
};

enum class SolveSpace {
  kAuto,    ///< the smaller
  kKeys,    ///< [N + M, N + M] system: I + Z^T Z, Z = (lambda C)^(-1/2) [H, K]
  kWeights  ///< [F, F] system: lambda C + H H^T + K K^T
};

/// Delta = R K^T (lambda C + H H^T + K K^T)^{-1}, as left = R, right = K^T (...)^{-1}: one column per new key.
/// Throws: NumericError when the system is not definite.
LowRankDelta solve_ridge(const RidgeProblem& problem, SolveSpace space = SolveSpace::kAuto);

}  // namespace lancet
