// How much the statistics weigh against the requests: A = lambda C + nu I, for methods that take both.
#pragma once

#include "layer_passes.h"

namespace lancet {

/// `covariance_weight`, lambda.
SolveWeight parse_covariance_weight(ConfigSection& editor);

/// `identity_weight`, nu (update_norm_lambda of unified-model-editing); default 0.
double parse_identity_weight(ConfigSection& editor);

/// L of L L^T = A / lambda, [F, F], lambda being the problem's weight. Only within EditContext::solve, as
/// covariance_factor.
Tensor weighted_factor(const EditContext& context, const LayerProblem& problem, double identity_weight);

}  // namespace lancet
