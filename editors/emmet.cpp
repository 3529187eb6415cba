// EMMET: a batch of facts as equality constraints: every key gets exactly its value (slack 0), or nearly. Source: Gupta
// et al., arXiv 2403.14236, section 4: Delta = R (K^T A^{-1} K + mu I)^{-1} K^T A^{-1}, A = lambda C + nu I, as in
// scalable-model-editing/unified-model-editing. Values, keys and residuals are those of MEMIT. Differs from the
// reference: no inverse is formed; linearly dependent keys are an error if mu = 0, and no pseudo-inverse is used; mu
// also applies to a single request.
#include "lancet/editor_parts/layer_passes.h"
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

class EmmetEditor final : public LayeredEditor {
 public:
  EmmetEditor(LayeredOptions layered, double identity_weight, double slack)
      : LayeredEditor(std::move(layered)), identity_weight_(identity_weight), slack_(slack) {}

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    EqualitySolution solution = solve_equality({.lower_FF = weighted_factor(context, problem, identity_weight_),
                                                .covariance_weight = problem.weight,
                                                .slack = slack_,
                                                .keys_FN = problem.keys_FN,
                                                .residuals_DN = problem.residuals_DN});
    return {std::move(solution.change), std::move(solution.inverse_gram_NN)};
  }

  /// lambda mu has the role that lambda has in MEMIT.
  Tensor leverages(const EditContext& context, const LayerProblem& problem) const override {
    return lancet::leverages(context.covariance_factor(problem.layer), problem.keys_FN) / slack_;
  }

 private:
  double identity_weight_;  ///< nu
  double slack_;            ///< mu
};

/// Parses the weight if slack is 0. Then every key gets its whole residual for any lambda, so lambda has an effect only
/// if nu is above 0.
SolveWeight parse_weight_without_slack(ConfigSection& editor, double identity_weight) {
  SolveWeight weight = parse_solve_weight(editor, LayeredSpec::kEmmetCovarianceWeight);
  if (!weight.number && identity_weight > 0)
    editor.problem(weight.option,
                   "expected a number beside slack: 0 and identity_weight: auto goes by the share of "
                   "its residual that a request gets, which is all of it with slack: 0");
  if (!weight.number) weight.number = 1;
  return weight;
}

}  // namespace

std::unique_ptr<Editor> make_emmet(ConfigSection& editor) {
  LayeredOptions layered = parse_layered_options(editor, {});
  const double slack = read(editor, LayeredSpec::kSlack);
  const double identity_weight = read(editor, LayeredSpec::kIdentityWeight);
  layered.weight = slack > 0 ? parse_solve_weight(editor, LayeredSpec::kEmmetCovarianceWeight)
                             : parse_weight_without_slack(editor, identity_weight);
  return std::make_unique<EmmetEditor>(std::move(layered), identity_weight, slack);
}

}  // namespace lancet
