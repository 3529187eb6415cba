// The closed-form updates of locate-then-edit methods: plain algebra in f64 on one device; knows no model.
// Source: ROME (arXiv 2202.05262, eq. 2), MEMIT (arXiv 2210.07229, eq. 14), EMMET (arXiv 2403.14236, section 4),
// AlphaEdit (arXiv 2410.02355, eq. 14), UltraEdit (arXiv 2505.14679, section 3). Differs from the references: no LU of
// the d_in x d_in system; C is factored once, without lambda (chol(lambda C) = sqrt(lambda) chol(C)), keys are whitened
// with that factor, and the system is solved in the smaller of the two spaces. C itself is not needed in either.
#pragma once

#include <cstdint>

#include "lancet/deltas/weight_update.h"
#include "lancet/statistics/null_space.h"

namespace lancet {

struct RidgeProblem {
  Tensor lower_FF;  ///< L, C = L L^T: lower triangle, row- or column-major; of experts its blocks [E, W, W]
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

/// Solves `system` x = right, whose memory is used up. Throws: NumericError saying `what` where it is not positive
/// definite.
Tensor solve_positive(Tensor system, const Tensor& right, const char* what);

/// s = k^T C^-1 k of each key: how far it stands out of what text has. Of C = L L^T; [N].
Tensor leverages(const Tensor& lower_FF, const Tensor& keys_FN);

/// Delta = R K^T (lambda C + H H^T + K K^T)^{-1}, as left = R, right = K^T (...)^{-1}: one column per new key.
/// Throws: NumericError when the keys are not finite.
LowRankDelta solve_ridge(const RidgeProblem& problem, SolveSpace space = SolveSpace::kAuto);

/// L of lambda C + weight I, scaled by 1 / sqrt(lambda), so that it stands for C's own: as lower_FF, column-major.
Tensor lift_factor(const Tensor& lower_FF, double covariance_weight, double identity_weight);

struct EqualityProblem {
  Tensor lower_FF;               ///< like RidgeProblem's
  double covariance_weight = 0;  ///< lambda > 0
  double slack = 0;              ///< mu >= 0; with 0 every key gets its value exactly
  Tensor keys_FN;
  Tensor residuals_DN;
};

struct EqualitySolution {
  LowRankDelta change;     ///< left = R
  Tensor inverse_gram_NN;  ///< (K^T A^{-1} K + mu I)^{-1}
};

/// Delta = R (K^T A^{-1} K + mu I)^{-1} K^T A^{-1}, A = lambda C.
/// Throws: NumericError when mu = 0 and the keys are more than their rank, or are not finite.
EqualitySolution solve_equality(const EqualityProblem& problem);

struct RankOneProblem {
  Tensor lower_FF;     ///< like RidgeProblem's; undefined: C = I
  Tensor direction_F;  ///< key that is given its place by C
  Tensor key_F;        ///< key that is to get the residual
  Tensor residual_D;
};

/// Delta = r u^T / (u^T k), u = C^{-1} direction: Delta k = r. Throws: NumericError when u is orthogonal to the key.
LowRankDelta solve_rank_one(const RankOneProblem& problem);

struct NullSpaceProblem {
  NullSpace null_space;  ///< P
  double ridge = 0;      ///< L2 > 0
  Tensor keys_FN;
  Tensor history_FM;  ///< undefined: none
  Tensor residuals_DN;
};

/// Delta^T = (P (K K^T + H H^T) + L2 I)^{-1} P K R^T; left = R, right lies in the null space.
LowRankDelta solve_null_space(const NullSpaceProblem& problem, SolveSpace space = SolveSpace::kAuto);

/// Delta = R (Y^T Y + L2 I)^{-1} Y^T, Y being keys as a projection P leaves them: solve_null_space() without history.
LowRankDelta solve_projected(const Tensor& projected_FN, double ridge, const Tensor& residuals_DN);

struct SubspaceProblem {
  Tensor basis_FQ;  ///< B: solve in the space of its columns; B^T A B = I
  Tensor keys_FN;
  Tensor history_FM;  ///< undefined: none
  Tensor residuals_DN;
};

/// Delta = R K^T B (I + B^T (H H^T + K K^T) B)^{-1} B^T.
LowRankDelta solve_in_subspace(const SubspaceProblem& problem);

/// Returns B^T A B = I, B = V X, for orthonormal V [F, Q] and A = weight L L^T + ridge I.
Tensor whitened_basis(const Tensor& vectors_FQ, const Tensor& lower_FF, double weight, double ridge);

/// Delta^T = X^T (X X^T + I)^{-1} V, the same as (X^T X + I)^{-1} X^T V: left = V^T, one column per row of X [M, I] and
/// V [M, O].
LowRankDelta solve_least_squares(const Tensor& inputs_MI, const Tensor& values_MO,
                                 SolveSpace space = SolveSpace::kAuto);

}  // namespace lancet
