// MEMIT: mass editing of facts by ridge updates of several MLP down-projections. Source: Meng et al., arXiv 2210.07229,
// algorithm 1. z* of every request once, on the unedited weights; then for each layer, ascending, with the weights as
// they are by now: Delta = (R / layers left) K^T (lambda C + H H^T + K K^T)^{-1}. H, the keys of earlier batches, is
// there with `history: true`: exact sums, not the reference's running n x n matrix. Differs from the reference: values
// in batches, solves in the smaller space (values.h, solvers.h).
#include "layered_editor.h"

namespace lancet {
namespace {

struct MemitOptions {
  double covariance_weight = 15000;  ///< lambda; default: the published Llama configurations
  double identity_weight = 0;  ///< added to lambda C on the diagonal (update_norm_lambda of unified-model-editing)
};

class MemitEditor final : public LayeredEditor {
 public:
  MemitEditor(LayeredOptions layered, MemitOptions options) : LayeredEditor(std::move(layered)), options_(options) {}

 protected:
  LowRankDelta solve(const EditContext& context, const LayerProblem& problem) const override {
    Tensor lower_FF = context.covariance_factor(problem.layer);
    if (options_.identity_weight > 0)
      lower_FF = lift_factor(lower_FF, options_.covariance_weight, options_.identity_weight);
    return solve_ridge({.lower_FF = lower_FF,
                        .covariance_weight = options_.covariance_weight,
                        .keys_FN = problem.keys_FN,
                        .history_FM = problem.history_FM,
                        .residuals_DN = problem.residuals_DN});
  }

 private:
  MemitOptions options_;
};

}  // namespace

std::unique_ptr<Editor> make_memit(ConfigSection& editor) {
  MemitOptions options;
  LayeredOptions layered = parse_layered_options(editor, {});
  layered.keeps_history = editor.boolean("history", false);
  options.covariance_weight = editor.number("covariance_weight", {.min = 1e-300}, options.covariance_weight);
  options.identity_weight = editor.number("identity_weight", {.min = 0}, options.identity_weight);
  return std::make_unique<MemitEditor>(std::move(layered), options);
}

}  // namespace lancet
