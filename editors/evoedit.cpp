// EvoEdit: AlphaEdit with a null space that shrinks with each edit, so that the outputs for stored keys do not change
// at all. Source: github.com/Euphoria040201/RLSEdit @6688b89: Delta = R (K^T P K + L2 I)^{-1} K^T P, then P <- P - Q
// Q^T, where Q has the left singular vectors of P K. Values, keys and residuals are those of MEMIT. Differs from the
// reference: Q is computed again from all earlier keys; P is never formed; no request is skipped because its residual
// is small.
#include <torch/types.h>

#include "lancet/editor_parts/layered_editor.h"
#include "lancet/editor_parts/null_space_rule.h"
#include "lancet/editor_parts/span_of.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

class EvoEditor final : public LayeredEditor {
 public:
  EvoEditor(LayeredOptions layered, const NullSpaceRule& rule) : LayeredEditor(std::move(layered)), rule_(rule) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = LayeredEditor::needs();
    needs.null_space = rule_;
    return needs;
  }

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_projected(projected_keys(context, problem), problem.weight, problem.residuals_DN);
  }

  /// Returns |P k|^2 of each key.
  Tensor leverages(const EditContext& context, const LayerProblem& problem) const override {
    return projected_keys(context, problem).square().sum(0);
  }

 private:
  /// Returns P K: the keys' part in the null space without the directions of earlier keys.
  static Tensor projected_keys(const EditContext& context, const LayerProblem& problem) {
    const torch::NoGradGuard no_grad;
    const NullSpace space = context.null_space(problem.layer);
    const Tensor within_FN = space.project(problem.keys_FN);
    if (!problem.history_FM.defined()) return within_FN;
    const Tensor spent_FR = span_of(space.project(problem.history_FM));
    return within_FN - torch::matmul(spent_FR, torch::matmul(spent_FR.t(), within_FN));
  }

  NullSpaceRule rule_;
};

}  // namespace

std::unique_ptr<Editor> make_evoedit(ConfigSection& editor) {
  LayeredOptions layered;
  layered.keeps_solved_keys = true;
  layered = parse_layered_options(editor, std::move(layered));
  const NullSpaceRule rule = parse_null_space_rule(editor);
  layered.weight = parse_solve_weight(editor, LayeredSpec::kRidge);
  return std::make_unique<EvoEditor>(std::move(layered), rule);
}

}  // namespace lancet
