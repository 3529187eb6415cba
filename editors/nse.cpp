// NSE, neuron-level sequential editing. Source: Jiang et al., arXiv 2410.04045, and its code as AlphaEdit's repository
// carries it: values are found on the weights from before the first batch; the layers are passed over until each
// request's ||z* - h|| is small enough; of a layer's inputs ("neurons") only those change that carry most of the keys:
// Delta_S = (R / layers left) K_S^T (lambda C_SS + H_S H_S^T + K_S K_S^T)^{-1}, S by the sum of |k| over the requests.
// H is MEMIT's history. Differs from the reference: all changes of a batch stay in the transaction (there, too, nothing
// is taken back between passes); `passes` counts passes, its `max_iterations` one more.
#include <torch/types.h>

#include "covariance_weights.h"
#include "layered_editor.h"

namespace lancet {
namespace {

struct NseOptions {
  CovarianceWeights weights;
  double neurons = 1.0;  ///< share of the keys' summed magnitude that the chosen inputs carry; 1: all inputs
};

/// The inputs with the largest sums of |k|, as many as carry at most `share` of all; at least one.
Tensor choose_neurons(const Tensor& keys_FN, double share) {
  const auto [size_F, order_F] = keys_FN.abs().sum(1).sort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
  const Tensor carried_F = size_F.cumsum(0);
  const auto n_within = (carried_F <= share * carried_F[-1]).sum().item<int64_t>();
  return order_F.narrow(0, 0, std::max<int64_t>(1, n_within));
}

class NseEditor final : public LayeredEditor {
 public:
  NseEditor(LayeredOptions layered, const NseOptions& options) : LayeredEditor(std::move(layered)), options_(options) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = LayeredEditor::needs();
    if (options_.neurons < 1) needs.solve_matrices = 3;  // its chosen rows, their product, the factor of that
    return needs;
  }

 protected:
  LowRankDelta solve(const EditContext& context, const LayerProblem& problem) const override {
    const Tensor lower_FF = weighted_factor(context, problem.layer, options_.weights);
    if (options_.neurons >= 1) return solve_for(lower_FF, problem.keys_FN, problem.history_FM, problem.residuals_DN);
    const Tensor chosen_S = choose_neurons(problem.keys_FN, options_.neurons);
    const auto those = [&](const Tensor& rows) { return rows.defined() ? rows.index_select(0, chosen_S) : rows; };
    const Tensor rows_SF = those(lower_FF);  // C_SS = L_S L_S^T
    const Tensor lower_SS = at::linalg_cholesky(rows_SF.matmul(rows_SF.t()));
    LowRankDelta change = solve_for(lower_SS, those(problem.keys_FN), those(problem.history_FM), problem.residuals_DN);
    const Tensor right_NF = torch::zeros({change.right_RI.size(0), problem.keys_FN.size(0)}, change.right_RI.options());
    change.right_RI = right_NF.index_copy(1, chosen_S, change.right_RI);
    return change;
  }

 private:
  LowRankDelta solve_for(const Tensor& lower, const Tensor& keys, const Tensor& history,
                         const Tensor& residuals) const {
    return solve_ridge({.lower_FF = lower,
                        .covariance_weight = options_.weights.covariance,
                        .keys_FN = keys,
                        .history_FM = history,
                        .residuals_DN = residuals});
  }

  NseOptions options_;
};

}  // namespace

std::unique_ptr<Editor> make_nse(ConfigSection& editor) {
  LayeredOptions layered = parse_layered_options(editor, {.values_on_unedited = true});
  layered.keeps_history = editor.boolean("history", true);
  layered.passes = editor.integer("passes", {.min = 1, .max = 100}, 2);
  layered.residuals.above = editor.number("residual_above", {.min = 0}, 2.5);
  layered.residuals.below = editor.number("residual_below", {.min = 1e-300}, 50);
  if (layered.residuals.above >= layered.residuals.below)
    editor.problem("residual_above", "expected less than residual_below");
  NseOptions options{.weights = parse_covariance_weights(editor)};
  options.neurons = editor.number("neurons", {.min = 1e-300, .max = 1}, options.neurons);
  return std::make_unique<NseEditor>(std::move(layered), options);
}

}  // namespace lancet
