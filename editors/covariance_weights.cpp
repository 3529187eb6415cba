#include "covariance_weights.h"

namespace lancet {

SolveWeight parse_covariance_weight(ConfigSection& editor) { return parse_solve_weight(editor, "covariance_weight"); }

double parse_identity_weight(ConfigSection& editor) { return editor.number("identity_weight", {.min = 0}, 0.0); }

Tensor weighted_factor(const EditContext& context, const LayerProblem& problem, double identity_weight) {
  Tensor lower_FF = context.covariance_factor(problem.layer);
  return identity_weight > 0 ? lift_factor(lower_FF, problem.weight, identity_weight) : lower_FF;
}

}  // namespace lancet
