// MEMIT: mass editing of facts by ridge updates of the down projections of several MLPs. Source: Meng et al., arXiv
// 2210.07229, algorithm 1. z* of every request is found once, on the unedited weights. Then for each layer, in
// ascending order, on the weights as changed so far: Delta = (R / layers left) K^T (lambda C + H H^T + K K^T)^{-1}. H,
// the keys of earlier batches, is used with `history: true`: these are exact sums, not the reference's running n x n
// matrix. Differs from the reference: values are found in batches, and solves are in the smaller space (values.h,
// solvers.h).
#include "lancet/editor_parts/layer_passes.h"
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/spec/editor_spec.h"
#include "lancet/spec/read_option.h"
#include "lancet/spec/residual_spec.h"

namespace lancet {
namespace {

class MemitEditor final : public LayeredEditor {
 public:
  MemitEditor(LayeredOptions layered, double identity_weight)
      : LayeredEditor(std::move(layered)), identity_weight_(identity_weight) {}

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_ridge({.lower_FF = weighted_factor(context, problem, identity_weight_),
                        .covariance_weight = problem.weight,
                        .keys_FN = problem.keys_FN,
                        .history_FM = problem.history_FM,
                        .residuals_DN = problem.residuals_DN});
  }

  Tensor leverages(const EditContext& context, const LayerProblem& problem) const override {
    return lancet::leverages(context.covariance_factor(problem.layer), problem.keys_FN);
  }

 private:
  double identity_weight_;  ///< nu
};

}  // namespace

std::unique_ptr<Editor> make_memit(ConfigSection& editor) {
  LayeredOptions layered;
  layered.error_feedback = true;
  layered.values.takes_chunks = true;
  layered = parse_layered_options(editor, std::move(layered));
  layered.text_budget = parse_text_budget(editor);
  layered.keeps_history = read(editor, LayeredSpec::kHistory);
  layered.weight = parse_solve_weight(editor, LayeredSpec::kCovarianceWeight);
  const double identity_weight = read(editor, LayeredSpec::kIdentityWeight);
  if (layered.text_budget && layered.keeps_history)
    editor.problem(LayeredSpec::kHistory.key, "expected false with text_budget, which holds earlier keys itself");
  if (layered.text_budget && layered.values.chunk_tokens > 0)
    editor.problem(ResidualSpec::kTextBudget.key,
                   "expected 0 with values.chunk_tokens: a budget's solve holds earlier batches' keys alone");
  if (layered.text_budget && editor.has(EditorSpec::kRepair.key))
    editor.problem(EditorSpec::kRepair.key, "expected it absent with text_budget, which is of what is solved alone");
  if (layered.text_budget && identity_weight > 0)
    editor.problem(LayeredSpec::kIdentityWeight.key, "expected 0 with text_budget, which is of the statistics alone");
  return std::make_unique<MemitEditor>(std::move(layered), identity_weight);
}

}  // namespace lancet
