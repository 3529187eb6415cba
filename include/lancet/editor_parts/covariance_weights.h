// How much the statistics weigh against the requests: A = lambda C + nu I, for methods that take both.
#pragma once

#include "lancet/editor_parts/layer_passes.h"

namespace lancet {

/// L of L L^T = A / lambda, [F, F], lambda being the problem's weight. Only within EditContext::solve, as
/// covariance_factor.
Tensor weighted_factor(const EditContext& context, const LayerProblem& problem, double identity_weight);

}  // namespace lancet
