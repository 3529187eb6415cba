// ROME and R-ROME: one fact at a time, by a rank-one change that gives the fact's key its value. Source: Meng et al.,
// arXiv 2202.05262, eq. 2; Gupta et al., arXiv 2403.07175 (R-ROME). Delta = (v* - W k) u^T / (u^T k), u = C^{-1} k', or
// u = k' with `covariance: false`. In ROME, k' is the mean key over all contexts, but k is the key of the plain prompt.
// R-ROME uses the same key for both: the mean key (and then the mean of W k), or the key of the plain prompt. Differs
// from the reference: C's factor is used, not an inverse; v* at the MLP's output is found in the same way as MEMIT's
// values (values.h).
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

enum class RomeKeys {
  kPrefix,   ///< the mean key over all contexts, for both
  kPrompt,   ///< the key of the plain prompt, for both
  kOriginal  ///< the mean key for the direction, the key of the plain prompt for the division (ROME)
};

class RomeEditor final : public LayeredEditor {
 public:
  RomeEditor(LayeredOptions layered, bool uses_covariance)
      : LayeredEditor(std::move(layered)), uses_covariance_(uses_covariance) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = LayeredEditor::needs();
    needs.statistics = uses_covariance_;
    return needs;
  }

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    const Tensor key_F = problem.keys_FN.squeeze(1);
    const bool has_direction = problem.directions_FN.defined();
    return solve_rank_one({.lower_FF = uses_covariance_ ? context.covariance_factor(problem.layer) : Tensor(),
                           .direction_F = has_direction ? problem.directions_FN.squeeze(1) : key_F,
                           .key_F = key_F,
                           .residual_D = problem.residuals_DN.squeeze(1)});
  }

 private:
  bool uses_covariance_;
};

std::unique_ptr<Editor> make_rome_editor(ConfigSection& editor, RomeKeys keys) {
  LayeredOptions layered;
  layered.values.site = ValueSite::kMlpOut;
  layered.order = EditOrder::kOneByOne;
  layered.key_mean = layered.output_mean = keys == RomeKeys::kPrefix ? ContextMean::kFlat : ContextMean::kPlain;
  if (keys == RomeKeys::kOriginal) layered.direction_mean = ContextMean::kFlat;
  layered = parse_layered_options(editor, std::move(layered));
  const bool uses_covariance = read(editor, LayeredSpec::kCovariance);
  if (!uses_covariance && layered.entity_weight > 0)
    editor.problem(LayeredSpec::kEntities.key, "expected weight: 0 with covariance: false, which uses no statistics");
  return std::make_unique<RomeEditor>(std::move(layered), uses_covariance);
}

}  // namespace

std::unique_ptr<Editor> make_rome(ConfigSection& editor) { return make_rome_editor(editor, RomeKeys::kOriginal); }

std::unique_ptr<Editor> make_r_rome(ConfigSection& editor) {
  return make_rome_editor(editor, read<RomeKeys>(editor, LayeredSpec::kKeys));
}

}  // namespace lancet
