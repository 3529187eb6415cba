// StableEdit: UltraEdit with gradients that are whitened as soon as there are enough of them. Source:
// github.com/MINE-USTC/StableEdit @6ea8eae. Inputs are standardised as in UltraEdit. Once there are n > d_out + 1 rows,
// gradients become Gn = (G - mean) S^{-1/2}, S = sum (g - mean)(g - mean)^T / (n - d_out - 1), with eigenvalues of at
// least 1e-6. V = -lr |Xn|^2 Gn; Delta^T = (X^T X + ridge I)^{-1} X^T V. The reference warms up with edits of other
// facts before the stream, whose gradients are only standardised; here the first `warm_up` requests of the stream have
// this role. Differs from the reference: sums over rows are f64.
#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/editor_parts/one_step.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

constexpr double kLeastEigenvalue = 1e-6;

/// The name of sum (g - mean)(g - mean)^T over the rows of all projections of one shape, in an editor's state.
std::string scatter_name(const TokenGradients& like) { return cat(normaliser_name(like), ".scatter"); }

/// The scatter that was whitened last, and the result. On root.
struct Whitened {
  Tensor scatter_OO, whitening_OO;
};

class StableEditor final : public OneStepEditor {
 public:
  StableEditor(OneStepOptions options, int64_t warm_up) : OneStepEditor(std::move(options)), warm_up_(warm_up) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = OneStepEditor::needs();
    needs.backward->whitens = true;
    return needs;
  }

 protected:
  void note(EditorState& state, const TokenGradients& tokens) const override {
    RunningStatistics statistics(state, tokens);
    const double before = statistics.count(), more = static_cast<double>(tokens.gradients_MO.size(0));
    const Tensor mean_O = tokens.gradients_MO.mean(0);
    const Tensor spread_MO = tokens.gradients_MO - mean_O;
    const Tensor drift_O = statistics.centred_gradients({tokens.inputs_MI, mean_O});
    const Tensor own_OO =
        torch::addmm(before * more / (before + more) * drift_O.outer(drift_O), spread_MO.t(), spread_MO);
    Tensor& scatter_OO = state.tensors[scatter_name(tokens)];
    const Tensor on_host = own_OO.to(Placement::host(), torch::kDouble);
    scatter_OO = scatter_OO.defined() ? scatter_OO + on_host : on_host;
    statistics.add_rows(tokens, RunningStatistics::Variance::kPopulation);
  }

  TokenGradients normalise(const EditContext& context, EditorState& state,
                           const TokenGradients& tokens) const override {
    const RunningStatistics statistics(state, tokens);
    TokenGradients unit = statistics.standardise(tokens);
    const double spare = statistics.count() - static_cast<double>(tokens.gradients_MO.size(1)) - 1;
    if (state.edits < warm_up_ || spare <= 0) return unit;
    const Tensor whitening_OO =
        whitening(context.kept<Whitened>(), state.tensors.at(scatter_name(tokens)), spare + kOneStepEps);
    unit.gradients_MO =
        torch::matmul(statistics.centred_gradients(tokens), whitening_OO.to(tokens.gradients_MO.options()));
    return unit;
  }

 private:
  /// Returns S^{-1/2} of S = scatter / divisor. All projections of one shape share it until the state changes.
  static Tensor whitening(Whitened& last, const Tensor& scatter_OO, double divisor) {
    if (last.scatter_OO.is_same(scatter_OO)) return last.whitening_OO;
    const auto [values_O, vectors_OO] = at::linalg_eigh(scatter_OO / divisor);
    last = {scatter_OO, torch::matmul(vectors_OO * values_O.clamp_min(kLeastEigenvalue).rsqrt(), vectors_OO.t())};
    return last.whitening_OO;
  }

  int64_t warm_up_;
};

}  // namespace

std::unique_ptr<Editor> make_stableedit(ConfigSection& editor) {
  OneStepOptions options = parse_one_step(editor, ModuleKinds::kDown, AutomaticModules::kLateDown);
  options.ridge = read(editor, GradientSpec::kStableRidge);
  const int64_t warm_up = read(editor, GradientSpec::kWarmUp);
  return std::make_unique<StableEditor>(std::move(options), warm_up);
}

}  // namespace lancet
