// PMET: values are found at the MLP and at the attention of the last layer together, and the MLP's alone is written.
// Source: Li et al., arXiv 2308.08742; as EasyEdit runs it: targets in the MLP's output, residuals over sqrt(layers
// left), Delta = R K^T (lambda C + K K^T)^{-1}. Differs from the reference: as MEMIT's here does from its own.
#include "layered_editor.h"

namespace lancet {
namespace {

class PmetEditor final : public LayeredEditor {
 public:
  PmetEditor(LayeredOptions layered, double covariance_weight)
      : LayeredEditor(std::move(layered)), covariance_weight_(covariance_weight) {}

 protected:
  LowRankDelta solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_ridge({.lower_FF = context.covariance_factor(problem.layer),
                        .covariance_weight = covariance_weight_,
                        .keys_FN = problem.keys_FN,
                        .history_FM = {},
                        .residuals_DN = problem.residuals_DN});
  }

 private:
  double covariance_weight_;  ///< lambda
};

}  // namespace

std::unique_ptr<Editor> make_pmet(ConfigSection& editor) {
  LayeredOptions layered;
  layered.values = {.steps = 20, .weight_decay = 0.5, .clamp = 1.0};  // EasyEdit's Llama-2-7B
  layered.values.site = ValueSite::kMlpAndAttnOut;
  layered.values.stop = ValueStop::kLossOrPredicted;
  layered.spread = Spread::kRoot;
  layered = parse_layered_options(editor, std::move(layered));
  const double covariance_weight = editor.number("covariance_weight", {.min = 1e-300}, 15000);
  return std::make_unique<PmetEditor>(std::move(layered), covariance_weight);
}

}  // namespace lancet
