#include "text_budget.h"

#include <torch/types.h>

#include "lancet/editing/text_budget.h"
#include "lancet/editor_parts/layer_passes.h"

namespace lancet {

/// Returns W - W0; undefined if the weight is not edited.
Tensor TextBudget::change_so_far(int64_t layer) const {
  const WeightTransaction::Entry* entry = transaction_.find({WeightKind::kDown, layer});
  if (entry == nullptr) return {};
  return entry->master.to(at::kDouble) - entry->base.to(entry->master.device(), at::kDouble);
}

WeightDelta TextBudget::solve(const LayerProblem& problem) const {
  const Tensor lower_FF = context_.covariance_factor(problem.layer);
  const Tensor unedited_DF = transaction_.unedited({WeightKind::kDown, problem.layer});
  const double all = energy_on_text(context_.to_solve_device(unedited_DF, problem.layer).to(at::kDouble), lower_FF);
  const Tensor change_DF = change_so_far(problem.layer);
  BudgetProblem budget{.lower_FF = lower_FF,
                       .covariance_weight = problem.weight,
                       .keys_FM = problem.keys_FN,
                       .changes_DM = problem.residuals_DN,
                       .most = share_ * all};
  if (change_DF.defined()) budget.changes_DM = budget.changes_DM + torch::matmul(change_DF, problem.keys_FN);
  if (problem.history_FM.defined()) {
    const int64_t n_inputs = problem.keys_FN.size(0);
    budget.keys_FM = torch::cat({budget.keys_FM, problem.history_FM.slice(0, 0, n_inputs)}, 1);
    budget.changes_DM = torch::cat({budget.changes_DM, problem.history_FM.slice(0, n_inputs)}, 1);
  }
  BudgetSolution solution = solve_within_budget(budget);
  if (!change_DF.defined() && !problem.history_FM.defined()) return std::move(solution.total);
  const Tensor total_DF = to_dense(solution.total);
  return DenseDelta{change_DF.defined() ? total_DF - change_DF : total_DF};
}

Tensor TextBudget::solved_columns(const LayerProblem& problem) const {
  return context_.decide_by([&] {
    return torch::cat({problem.keys_FN, torch::matmul(change_so_far(problem.layer), problem.keys_FN)}, 0);
  });
}

}  // namespace lancet
