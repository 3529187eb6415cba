// AlphaEdit: changes that act in the null space of what the model knows. Source: Fang et al., arXiv 2410.02355, eq. 14:
// Delta^T = (P (K K^T + H H^T) + L2 I)^{-1} P K R^T, P the projector onto eigenvectors of C with eigenvalues below a
// threshold, H the keys of earlier batches, measured behind them. Values, keys and residuals are MEMIT's. Differs from
// the reference: P is applied to keys and never formed, H is a list of keys and no n x n sum, and the solve is one of
// as many rows as there are keys.
#include "layered_editor.h"

namespace lancet {
namespace {

struct AlphaEditOptions {
  double null_space_below = 2e-2;  ///< eigenvalue of C; as published
  double ridge = 10;               ///< L2; as published
};

class AlphaEditor final : public LayeredEditor {
 public:
  AlphaEditor(LayeredOptions layered, AlphaEditOptions options)
      : LayeredEditor(std::move(layered)), options_(options) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = LayeredEditor::needs();
    needs.null_space_below = options_.null_space_below;
    return needs;
  }

 protected:
  LowRankDelta solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_null_space({.null_space = context.null_space(problem.layer),
                             .ridge = options_.ridge,
                             .keys_FN = problem.keys_FN,
                             .history_FM = problem.history_FM,
                             .residuals_DN = problem.residuals_DN});
  }

 private:
  AlphaEditOptions options_;
};

}  // namespace

std::unique_ptr<Editor> make_alphaedit(ConfigSection& editor) {
  AlphaEditOptions options;
  LayeredOptions layered = parse_layered_options(editor, {});
  layered.keeps_history = editor.boolean("history", true);
  options.null_space_below = editor.number("null_space_below", {.min = 1e-300}, options.null_space_below);
  options.ridge = editor.number("ridge", {.min = 1e-300}, options.ridge);
  return std::make_unique<AlphaEditor>(std::move(layered), options);
}

}  // namespace lancet
