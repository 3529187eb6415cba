// ROME and R-ROME: one fact at a time, a rank-one change that gives its key its value. Source: Meng et al., arXiv
// 2202.05262, eq. 2; Gupta et al., arXiv 2403.07175 (R-ROME). Delta = (v* - W k) u^T / (u^T k), u = C^{-1} k', or u =
// k' with `covariance: false`. ROME takes k' as the mean over all contexts but k of the plain prompt; R-ROME takes one
// key for both: the mean, with W k the mean too, or the plain prompt's. Differs from the reference: C's factor, no
// inverse; v* at the MLP's output is found as MEMIT's values are (values.h).
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

enum class RomeKeys {
  kPrefix,   ///< one key, the mean over all contexts
  kPrompt,   ///< one key, the plain prompt's
  kOriginal  ///< direction from the mean, division by the plain prompt's (ROME)
};

class RomeEditor final : public LayeredEditor {
 public:
  RomeEditor(LayeredOptions layered, bool uses_covariance)
      : LayeredEditor(std::move(layered)), uses_covariance_(uses_covariance) {}

  EditorNeeds needs() const override { return {.subject = true, .statistics = uses_covariance_}; }

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
  return std::make_unique<RomeEditor>(std::move(layered), uses_covariance);
}

}  // namespace

std::unique_ptr<Editor> make_rome(ConfigSection& editor) { return make_rome_editor(editor, RomeKeys::kOriginal); }

std::unique_ptr<Editor> make_r_rome(ConfigSection& editor) {
  return make_rome_editor(editor, read<RomeKeys>(editor, LayeredSpec::kKeys));
}

}  // namespace lancet
