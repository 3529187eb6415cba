// NSE, neuron-level sequential editing. Source: Jiang et al., arXiv 2410.04045, and its code in AlphaEdit's repository.
// Values are found on the weights from before the first batch. Passes over the layers are repeated until each request's
// ||z* - h|| is small enough. Only those inputs of a layer ("neurons") are changed that have most of the keys'
// magnitude: Delta_S = (R / layers left) K_S^T (lambda C_SS + H_S H_S^T + K_S K_S^T)^{-1}, where S is chosen by the sum
// of |k| over the requests. H is MEMIT's history. Differs from the reference: all changes of a batch stay in the
// transaction (there, too, nothing is taken back between passes); `passes` counts the passes, while the reference's
// `max_iterations` is one more.
#include <torch/types.h>

#include <numeric>
#include <vector>

#include "lancet/editor_parts/layer_passes.h"
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

struct NseOptions {
  double identity_weight = *LayeredSpec::kIdentityWeight.fallback;  ///< nu
  /// The share of the keys' summed magnitude that the chosen inputs have; 1: all inputs.
  double neurons = *LayeredSpec::kNeurons.fallback;
};

/// Returns the inputs with the largest sums of |k|: as many as have at most `share` of the total, at least one. The
/// sums are added on the host, one after another, because cumulative sums on a GPU have no fixed order.
Tensor choose_neurons(const Tensor& keys_FN, double share) {
  const auto [size_F, order_F] = keys_FN.abs().sum(1).sort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
  const std::vector<double> sizes = to_doubles(size_F);
  const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  int64_t n_within = 0;
  double carried = 0;
  for (const double size : sizes) n_within += (carried += size) <= share * all ? 1 : 0;
  return order_F.narrow(0, 0, std::max<int64_t>(1, n_within));
}

class NseEditor final : public LayeredEditor {
 public:
  NseEditor(LayeredOptions layered, const NseOptions& options) : LayeredEditor(std::move(layered)), options_(options) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = LayeredEditor::needs();
    if (options_.neurons < 1) needs.solve_matrices = 3;  // the chosen rows, their product, and its factor
    return needs;
  }

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    const Tensor lower_FF = weighted_factor(context, problem, options_.identity_weight);
    if (options_.neurons >= 1) return solve_for(lower_FF, problem);
    const Tensor chosen_S = choose_neurons(problem.keys_FN, options_.neurons);
    LowRankDelta change = solve_for(factor_of(chosen_S, lower_FF), those(chosen_S, problem));
    const Tensor right_NF = torch::zeros({change.right_RI.size(0), problem.keys_FN.size(0)}, change.right_RI.options());
    change.right_RI = right_NF.index_copy(1, chosen_S, change.right_RI);
    return change;
  }

  Tensor leverages(const EditContext& context, const LayerProblem& problem) const override {
    const Tensor lower_FF = context.covariance_factor(problem.layer);
    if (options_.neurons >= 1) return lancet::leverages(lower_FF, problem.keys_FN);
    const Tensor chosen_S = choose_neurons(problem.keys_FN, options_.neurons);
    return lancet::leverages(factor_of(chosen_S, lower_FF), problem.keys_FN.index_select(0, chosen_S));
  }

 private:
  /// Returns L_S with C_SS = L_S L_S^T.
  static Tensor factor_of(const Tensor& chosen_S, const Tensor& lower_FF) {
    const Tensor rows_SW = lower_FF.flatten(0, -2).index_select(0, chosen_S);
    const Tensor product_SS = rows_SW.matmul(rows_SW.t());
    if (lower_FF.dim() == 3) {  // C is 0 between different experts
      const Tensor expert_S = chosen_S.div(lower_FF.size(-1), "floor");
      product_SS.mul_(expert_S.unsqueeze(0) == expert_S.unsqueeze(1));
    }
    return at::linalg_cholesky(product_SS);
  }

  static LayerProblem those(const Tensor& chosen_S, LayerProblem problem) {
    problem.keys_FN = problem.keys_FN.index_select(0, chosen_S);
    if (problem.history_FM.defined()) problem.history_FM = problem.history_FM.index_select(0, chosen_S);
    return problem;
  }

  static LowRankDelta solve_for(const Tensor& lower, const LayerProblem& problem) {
    return solve_ridge({.lower_FF = lower,
                        .covariance_weight = problem.weight,
                        .keys_FN = problem.keys_FN,
                        .history_FM = problem.history_FM,
                        .residuals_DN = problem.residuals_DN});
  }

  NseOptions options_;
};

}  // namespace

std::unique_ptr<Editor> make_nse(ConfigSection& editor) {
  LayeredOptions layered;
  layered.values_on_unedited = true;
  layered.error_feedback = true;
  layered = parse_layered_options(editor, std::move(layered));
  layered.keeps_history = read(editor, LayeredSpec::kStreamHistory);
  layered.passes = read(editor, LayeredSpec::kPasses);
  ResidualBounds& bounds = layered.residuals;
  bounds.above = read_or_auto(editor, LayeredSpec::kResidualAbove);
  bounds.below = read_or_auto(editor, LayeredSpec::kResidualBelow);
  if (bounds.above && bounds.below && *bounds.above >= *bounds.below)
    editor.problem(LayeredSpec::kResidualAbove.key, "expected less than residual_below");
  layered.weight = parse_solve_weight(editor, LayeredSpec::kCovarianceWeight);
  NseOptions options{.identity_weight = read(editor, LayeredSpec::kIdentityWeight)};
  options.neurons = read(editor, LayeredSpec::kNeurons);
  return std::make_unique<NseEditor>(std::move(layered), options);
}

}  // namespace lancet
