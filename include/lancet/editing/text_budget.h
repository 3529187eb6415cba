// A budget for how far edits may change a weight's outputs on text, and changes within the budget. Source: LyapLock
// (github.com/SasyaTitech/NAS @5acab48, baselines/lyaplock): all edits so far are solved for together, and the weight
// of the statistics grows if outputs on text changed too much. With W0 the unedited weight, T = W - W0 and D = tr(T C
// T^T), its
// Delta = [V (R K^T + (V_h - W H) H^T) - a Z lambda T C] (V (K K^T + H H^T) + a Z lambda C)^{-1}
// is T' - T with T' = [R + T K, V_h - W0 H] [K, H]^T (mu C + K K^T + H H^T)^{-1}, mu = a Z lambda / V. Differs from the
// reference: its mu follows a queue, Z <- max(Z + a (D - alpha D0) + b, z_min), which keeps the budget on average over
// many batches. Here mu is the least value, from lambda on, at which D is within the budget, so every batch keeps it.
#pragma once

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// Returns tr(W C W^T), C = L L^T: the sum of squares of the outputs of W [D, F] on text. `lower_FF`: as
/// RidgeProblem::lower_FF.
double energy_on_text(const Tensor& weight_DF, const Tensor& lower_FF);

struct BudgetProblem {
  Tensor lower_FF;               ///< as RidgeProblem::lower_FF
  double covariance_weight = 0;  ///< lambda > 0, the least mu
  Tensor keys_FM;                ///< keys of all edits so far and of the new ones
  Tensor changes_DM;             ///< the change that T' should give at each key
  double most = 0;               ///< the budget for D, above 0
};

struct BudgetSolution {
  LowRankDelta total;            ///< T', a column for each key
  double covariance_weight = 0;  ///< mu
  double energy = 0;             ///< D for T'
};

/// Solves for T' = U K^T (mu C + K K^T)^{-1}, with all changes U and all keys K. Throws: NumericError if keys are not
/// finite.
BudgetSolution solve_within_budget(const BudgetProblem& problem);

}  // namespace lancet
