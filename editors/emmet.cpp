// EMMET: a batch of facts as equality constraints: every key gets its value exactly (slack 0), or nearly.
// Source: Gupta et al., arXiv 2403.14236, section 4; Delta = R (K^T A^{-1} K + mu I)^{-1} K^T A^{-1}, A = lambda C +
// nu I, as in scalable-model-editing/unified-model-editing. Values, keys and residuals are MEMIT's. Differs from the
// reference: no inverse is formed, and keys that depend on one another are an error at mu = 0, not a pseudo-inverse;
// mu counts for single requests too.
#include "covariance_weights.h"
#include "layered_editor.h"

namespace lancet {
namespace {

constexpr double kCovarianceWeight = 100000;  // lambda of EasyEdit's Llama configurations
constexpr double kSlack = 0.1;                // as published

class EmmetEditor final : public LayeredEditor {
 public:
  EmmetEditor(LayeredOptions layered, const CovarianceWeights& weights, double slack)
      : LayeredEditor(std::move(layered)), weights_(weights), slack_(slack) {}

 protected:
  LowRankDelta solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_equality({.lower_FF = weighted_factor(context, problem.layer, weights_),
                           .covariance_weight = weights_.covariance,
                           .slack = slack_,
                           .keys_FN = problem.keys_FN,
                           .residuals_DN = problem.residuals_DN});
  }

 private:
  CovarianceWeights weights_;
  double slack_;  ///< mu
};

}  // namespace

std::unique_ptr<Editor> make_emmet(ConfigSection& editor) {
  LayeredOptions layered = parse_layered_options(editor, {});
  const CovarianceWeights weights = parse_covariance_weights(editor, {.covariance = kCovarianceWeight});
  const double slack = editor.number("slack", {.min = 0}, kSlack);
  return std::make_unique<EmmetEditor>(std::move(layered), weights, slack);
}

}  // namespace lancet
