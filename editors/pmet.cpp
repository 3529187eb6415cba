// PMET: values are found together at the MLP and at the attention of the last layer, but only the MLP is changed.
// Source: Li et al., arXiv 2308.08742, as EasyEdit runs it: targets at the MLP's output, residuals divided by
// sqrt(layers left), Delta = R K^T (lambda C + K K^T)^{-1}. Differs from the reference: as MEMIT here differs from its
// reference.
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/spec/layered_spec.h"

namespace lancet {
namespace {

class PmetEditor final : public LayeredEditor {
 public:
  using LayeredEditor::LayeredEditor;

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_ridge({.lower_FF = context.covariance_factor(problem.layer),
                        .covariance_weight = problem.weight,
                        .keys_FN = problem.keys_FN,
                        .history_FM = {},
                        .residuals_DN = problem.residuals_DN});
  }

  Tensor leverages(const EditContext& context, const LayerProblem& problem) const override {
    return lancet::leverages(context.covariance_factor(problem.layer), problem.keys_FN);
  }
};

}  // namespace

std::unique_ptr<Editor> make_pmet(ConfigSection& editor) {
  LayeredOptions layered;
  layered.values.site = ValueSite::kMlpAndAttnOut;
  layered.values.stop = ValueStop::kLossOrPredicted;
  layered.spread = Spread::kRoot;
  layered = parse_layered_options(editor, std::move(layered));
  layered.weight = parse_solve_weight(editor, LayeredSpec::kPmetCovarianceWeight);
  return std::make_unique<PmetEditor>(std::move(layered));
}

}  // namespace lancet
