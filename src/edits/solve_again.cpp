// Solves whose history lost columns.
#include <torch/types.h>

#include "lancet/edit/solvers.h"
#include "lancet/edits/downdate.h"

namespace lancet {
namespace {

/// Inputs that the change leaves alone were left out of its solve.
Tensor inputs_of(const Tensor& right_NF) { return (right_NF != 0).any(0).nonzero().squeeze(1); }

/// Of C_SS = L_S L_S^T; between the blocks of experts C is 0.
Tensor factor_of(const Tensor& inputs_S, const Tensor& lower_FF) {
  const Tensor rows_SW = lower_FF.flatten(0, -2).index_select(0, inputs_S);
  const Tensor product_SS = rows_SW.matmul(rows_SW.t());
  if (lower_FF.dim() == 3) {
    const Tensor expert_S = inputs_S.div(lower_FF.size(-1), "floor");
    product_SS.mul_(expert_S.unsqueeze(0) == expert_S.unsqueeze(1));
  }
  return at::linalg_cholesky(product_SS);
}

Tensor on_host(const Tensor& tensor) { return tensor.to(Placement::host(), torch::kDouble); }

}  // namespace

Tensor solve_again(const SolveAgain& problem, const Tensor& lower_FF, double covariance_weight) {
  const torch::NoGradGuard no_grad;
  const auto here = [&](const Tensor& tensor) { return tensor.to(lower_FF.device()); };
  RidgeProblem ridge{.lower_FF = lower_FF,
                     .covariance_weight = covariance_weight,
                     .keys_FN = here(problem.system.keys_FN),
                     .history_FM = {},
                     .residuals_DN = here(problem.system.residuals_DN)};
  if (problem.history_FM.defined()) ridge.history_FM = here(problem.history_FM);
  const Tensor inputs_S = here(inputs_of(problem.right_NF));
  const bool has_all = inputs_S.size(0) == problem.system.keys_FN.size(0);
  if (has_all) return on_host(solve_ridge(ridge).right_RI);
  ridge.lower_FF = factor_of(inputs_S, lower_FF);
  ridge.keys_FN = ridge.keys_FN.index_select(0, inputs_S);
  if (ridge.history_FM.defined()) ridge.history_FM = ridge.history_FM.index_select(0, inputs_S);
  const Tensor right_NS = solve_ridge(ridge).right_RI;
  return on_host(torch::zeros_like(here(problem.right_NF)).index_copy(1, inputs_S, right_NS));
}

Tensor solve_again(const SolveAgain& problem, const NullSpace& null_space, double ridge) {
  const torch::NoGradGuard no_grad;
  const auto here = [&](const Tensor& tensor) { return tensor.to(null_space.basis_FQ.device()); };
  NullSpaceProblem again{.null_space = null_space,
                         .ridge = ridge,
                         .keys_FN = here(problem.system.keys_FN),
                         .history_FM = {},
                         .residuals_DN = here(problem.system.residuals_DN)};
  if (problem.history_FM.defined()) again.history_FM = here(problem.history_FM);
  return on_host(solve_null_space(again).right_RI);
}

}  // namespace lancet
