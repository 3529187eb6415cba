// EMMET: a batch of facts as equality constraints: every key gets its value exactly (slack 0), or nearly.
// Source: Gupta et al., arXiv 2403.14236, section 4; Delta = R (K^T A^{-1} K + mu I)^{-1} K^T A^{-1}, A = lambda C +
// nu I, as in scalable-model-editing/unified-model-editing. Values, keys and residuals are MEMIT's. Differs from the
// reference: no inverse is formed, and keys that depend on one another are an error at mu = 0, not a pseudo-inverse;
// mu counts for single requests too.
#include "layered_editor.h"

namespace lancet {
namespace {

struct EmmetOptions {
  double covariance_weight = 100000;  ///< lambda; default: EasyEdit's Llama configurations
  double identity_weight = 0;         ///< nu
  double slack = 0.1;                 ///< mu; default: as published
};

class EmmetEditor final : public LayeredEditor {
 public:
  EmmetEditor(LayeredOptions layered, EmmetOptions options) : LayeredEditor(std::move(layered)), options_(options) {}

 protected:
  LowRankDelta solve(const EditContext& context, const LayerProblem& problem) const override {
    Tensor lower_FF = context.covariance_factor(problem.layer);
    if (options_.identity_weight > 0)
      lower_FF = lift_factor(lower_FF, options_.covariance_weight, options_.identity_weight);
    return solve_equality({.lower_FF = lower_FF,
                           .covariance_weight = options_.covariance_weight,
                           .slack = options_.slack,
                           .keys_FN = problem.keys_FN,
                           .residuals_DN = problem.residuals_DN});
  }

 private:
  EmmetOptions options_;
};

}  // namespace

std::unique_ptr<Editor> make_emmet(ConfigSection& editor) {
  EmmetOptions options;
  LayeredOptions layered = parse_layered_options(editor, {});
  options.covariance_weight = editor.number("covariance_weight", {.min = 1e-300}, options.covariance_weight);
  options.identity_weight = editor.number("identity_weight", {.min = 0}, options.identity_weight);
  options.slack = editor.number("slack", {.min = 0}, options.slack);
  return std::make_unique<EmmetEditor>(std::move(layered), options);
}

}  // namespace lancet
