#include "lancet/editor_parts/covariance_weights.h"

namespace lancet {

Tensor weighted_factor(const EditContext& context, const LayerProblem& problem, double identity_weight) {
  Tensor lower_FF = context.covariance_factor(problem.layer);
  return identity_weight > 0 ? lift_factor(lower_FF, problem.weight, identity_weight) : lower_FF;
}

}  // namespace lancet
