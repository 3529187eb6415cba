// How far text may move a weight's outputs, and changes that hold to it. Source: LyapLock (github.com/SasyaTitech/NAS
// @5acab48, baselines/lyaplock): all edits so far are solved for together, against a weight of the statistics that
// grows where text has moved too far. With W0 the unedited weight, T = W - W0 and D = tr(T C T^T), its
//   Delta = [V (R K^T + (V_h - W H) H^T) - a Z lambda T C] (V (K K^T + H H^T) + a Z lambda C)^{-1}
// is T' - T with T' = [R + T K, V_h - W0 H] [K, H]^T (mu C + K K^T + H H^T)^{-1}, mu = a Z lambda / V. Differs from the
// reference: its mu follows a queue, Z <- max(Z + a (D - alpha D0) + b, z_min), which holds the budget in the mean over
// many batches; here mu is the least one, from lambda on, at which D is within the budget, so every batch is.
#pragma once

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// Returns tr(W C W^T), C = L L^T: how large the outputs of W [D, F] are on text, squared and summed. `lower_FF`: as
/// RidgeProblem's.
double energy_on_text(const Tensor& weight_DF, const Tensor& lower_FF);

struct BudgetProblem {
  Tensor lower_FF;               ///< like RidgeProblem's
  double covariance_weight = 0;  ///< lambda > 0, the least mu
  Tensor keys_FM;                ///< keys of all edits so far, and the new ones
  Tensor changes_DM;             ///< what T' is to give at each of them
  double most = 0;               ///< the budget of D, above 0
};

struct BudgetSolution {
  LowRankDelta total;            ///< T', a column for each key
  double covariance_weight = 0;  ///< mu
  double energy = 0;             ///< D of T'
};

/// T' = U K^T (mu C + K K^T)^{-1}, U and K being all changes and keys. Throws: NumericError when keys are not finite.
BudgetSolution solve_within_budget(const BudgetProblem& problem);

}  // namespace lancet
