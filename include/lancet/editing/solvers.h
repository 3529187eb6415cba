// The closed-form updates of locate-then-edit methods: pure algebra in f64 on one device, independent of the model.
// Source: ROME (arXiv 2202.05262, eq. 2), MEMIT (arXiv 2210.07229, eq. 14), EMMET (arXiv 2403.14236, section 4),
// AlphaEdit (arXiv 2410.02355, eq. 14), UltraEdit (arXiv 2505.14679, section 3). Differs from the references: the d_in
// x d_in system is not solved by LU. C is factored once, without lambda (chol(lambda C) = sqrt(lambda) chol(C)), keys
// are whitened with that factor, and the system is solved in the smaller of the two spaces. C itself is needed in
// neither.
#pragma once

#include <cstdint>

#include "lancet/deltas/weight_update.h"
#include "lancet/statistics/null_space.h"

namespace lancet {

struct RidgeProblem {
  Tensor lower_FF;  ///< L, C = L L^T: lower triangle, row- or column-major; for experts the blocks [E, W, W]
  double covariance_weight = 0;  ///< lambda > 0
  Tensor keys_FN;                ///< new keys
  Tensor history_FM;             ///< keys of earlier batches, whose values are preserved; undefined: none
  Tensor residuals_DN;           ///< the change of each key's value that is asked for
};

enum class SolveSpace {
  kAuto,    ///< the smaller one
  kKeys,    ///< [M + N, M + N] system: I + Z^T Z, Z = (lambda C)^(-1/2) [H, K]
  kWeights  ///< [F, F] system: I + Z Z^T
};

/// Solves `system` x = right and overwrites `system`. Throws: NumericError with `what` if it is not positive definite.
Tensor solve_positive(Tensor system, const Tensor& right, const char* what);

/// Returns s = k^T C^-1 k for each key, [N], C = L L^T: how unusual the key is compared with the keys of text.
Tensor leverages(const Tensor& lower_FF, const Tensor& keys_FN);

/// Solves for Delta = R K^T (lambda C + H H^T + K K^T)^{-1}, as left = R and right = K^T (...)^{-1}: one column per new
/// key. Throws: NumericError if the keys are not finite.
LowRankDelta solve_ridge(const RidgeProblem& problem, SolveSpace space = SolveSpace::kAuto);

/// Returns L of lambda C + weight I, scaled by 1 / sqrt(lambda) so that it can replace C's own: as lower_FF,
/// column-major.
Tensor lift_factor(const Tensor& lower_FF, double covariance_weight, double identity_weight);

struct EqualityProblem {
  Tensor lower_FF;               ///< as RidgeProblem::lower_FF
  double covariance_weight = 0;  ///< lambda > 0
  double slack = 0;              ///< mu >= 0; if it is 0, every key gets its value exactly
  Tensor keys_FN;
  Tensor residuals_DN;
};

struct EqualitySolution {
  LowRankDelta change;     ///< left = R
  Tensor inverse_gram_NN;  ///< (K^T A^{-1} K + mu I)^{-1}
};

/// Solves for Delta = R (K^T A^{-1} K + mu I)^{-1} K^T A^{-1}, A = lambda C. Throws: NumericError if mu = 0 and the
/// keys are linearly dependent, or if the keys are not finite.
EqualitySolution solve_equality(const EqualityProblem& problem);

struct RankOneProblem {
  Tensor lower_FF;     ///< as RidgeProblem::lower_FF; undefined: C = I
  Tensor direction_F;  ///< the key from which u is computed
  Tensor key_F;        ///< the key that gets the residual
  Tensor residual_D;
};

/// Solves for Delta = r u^T / (u^T k), u = C^{-1} direction: Delta k = r. Throws: NumericError if u is orthogonal to
/// the key.
LowRankDelta solve_rank_one(const RankOneProblem& problem);

struct NullSpaceProblem {
  NullSpace null_space;  ///< P
  double ridge = 0;      ///< L2 > 0
  Tensor keys_FN;
  Tensor history_FM;  ///< undefined: none
  Tensor residuals_DN;
};

/// Solves Delta^T = (P (K K^T + H H^T) + L2 I)^{-1} P K R^T; left = R, and right lies in the null space.
LowRankDelta solve_null_space(const NullSpaceProblem& problem, SolveSpace space = SolveSpace::kAuto);

/// Solves for Delta = R (Y^T Y + L2 I)^{-1} Y^T, where Y are keys after a projection P: solve_null_space() without
/// history.
LowRankDelta solve_projected(const Tensor& projected_FN, double ridge, const Tensor& residuals_DN);

struct SubspaceProblem {
  Tensor basis_FQ;  ///< B: the solve is in the space of its columns; B^T A B = I
  Tensor keys_FN;
  Tensor history_FM;  ///< undefined: none
  Tensor residuals_DN;
};

/// Solves for Delta = R K^T B (I + B^T (H H^T + K K^T) B)^{-1} B^T.
LowRankDelta solve_in_subspace(const SubspaceProblem& problem);

/// Returns a basis B = V X with B^T A B = I, for orthonormal V [F, Q] and A = weight L L^T + ridge I.
Tensor whitened_basis(const Tensor& vectors_FQ, const Tensor& lower_FF, double weight, double ridge);

/// Solves for Delta^T = X^T (X X^T + I)^{-1} V, which equals (X^T X + I)^{-1} X^T V: left = V^T, one column per row of
/// X [M, I] and V [M, O].
LowRankDelta solve_least_squares(const Tensor& inputs_MI, const Tensor& values_MO,
                                 SolveSpace space = SolveSpace::kAuto);

}  // namespace lancet
