// AlphaEdit: changes in the null space of the keys of text. Source: Fang et al., arXiv 2410.02355, eq. 14: Delta^T = (P
// (K K^T + H H^T) + L2 I)^{-1} P K R^T. P projects onto the eigenvectors of C with eigenvalues below a threshold. H has
// the keys of earlier batches, measured after them. Values, keys and residuals are those of MEMIT. Differs from the
// reference: P is applied to keys and never formed; H is a list of keys and not an n x n sum; the solve has as many
// rows as there are keys.
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/editor_parts/null_space_rule.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

class AlphaEditor final : public LayeredEditor {
 public:
  AlphaEditor(LayeredOptions layered, const NullSpaceRule& rule) : LayeredEditor(std::move(layered)), rule_(rule) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = LayeredEditor::needs();
    needs.null_space = rule_;
    return needs;
  }

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_null_space({.null_space = context.null_space(problem.layer),
                             .ridge = problem.weight,
                             .keys_FN = problem.keys_FN,
                             .history_FM = problem.history_FM,
                             .residuals_DN = problem.residuals_DN});
  }

  /// Returns |P k|^2 of each key.
  Tensor leverages(const EditContext& context, const LayerProblem& problem) const override {
    return context.null_space(problem.layer).project(problem.keys_FN).square().sum(0);
  }

 private:
  NullSpaceRule rule_;
};

}  // namespace

std::unique_ptr<Editor> make_alphaedit(ConfigSection& editor) {
  LayeredOptions layered;
  layered.error_feedback = true;
  layered = parse_layered_options(editor, std::move(layered));
  layered.keeps_history = read(editor, LayeredSpec::kStreamHistory);
  const NullSpaceRule rule = parse_null_space_rule(editor);
  layered.weight = parse_solve_weight(editor, LayeredSpec::kRidge);
  return std::make_unique<AlphaEditor>(std::move(layered), rule);
}

}  // namespace lancet
