// UltraEdit: one backward pass for a batch, without a subject and without an optimisation. Source: Gu et al., arXiv
// 2505.14679. For each projection it takes the inputs X and the gradients G at its outputs, token by token, normalised
// with running statistics that also have the earlier batches. V = -lr |Xn|^2 Gn; Delta^T = (X^T X + I)^{-1} X^T V,
// where X is not normalised. Differs from the reference: the solve has as many rows as there are tokens; nothing is
// written to disk; a mini-batch of one token has variance 0.
#include "lancet/editor_parts/one_step.h"

namespace lancet {
namespace {

class UltraEditor final : public OneStepEditor {
 public:
  using OneStepEditor::OneStepEditor;

 protected:
  void note(EditorState& state, const TokenGradients& tokens) const override {
    RunningStatistics(state, tokens).add_rows(tokens, RunningStatistics::Variance::kSample);
  }
  TokenGradients normalise(const EditContext&, EditorState& state, const TokenGradients& tokens) const override {
    return RunningStatistics(state, tokens).standardise(tokens);
  }
};

}  // namespace

std::unique_ptr<Editor> make_ultraedit(ConfigSection& editor) {
  return std::make_unique<UltraEditor>(parse_one_step(editor, ModuleKinds::kAll, AutomaticModules::kMiddle));
}

}  // namespace lancet
