// BetaEdit: AlphaEdit with the covariance in the solve, and a null space that is computed again as edits are added.
// Source: github.com/lbq8942/BetaEdit @740e323: Delta^T = (P (K K^T + H H^T + l1 C) + l2 I)^{-1} P K R^T. After every
// `refresh` edits P becomes the projection onto the null space of (H H^T / n + l1 C) / (1 + l1), where n is the number
// of keys in H. Values, keys and residuals are those of MEMIT. Differs from the reference: P uses the largest multiple
// of `refresh` keys, whatever the batches are; the solve is inside the null space and has as many rows as there are
// keys; no edit is stopped because of its norm.
#include <torch/types.h>

#include <map>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editor_parts/layered_editor.h"
#include "lancet/editor_parts/null_space_rule.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

struct BetaOptions {
  NullSpaceRule rule;
  double covariance_weight = 0;  ///< l1
  double ridge = 0;              ///< l2
  int64_t refresh = 0;
};

/// The basis of a layer, and the number of keys that it was computed from.
struct BasisOfKeys {
  int64_t n_keys = -1;
  Tensor basis_FQ;
};
using BasisOfLayer = std::map<int64_t, BasisOfKeys>;  // on root

class BetaEditor final : public LayeredEditor {
 public:
  BetaEditor(LayeredOptions layered, const BetaOptions& options)
      : LayeredEditor(std::move(layered)), options_(options) {}

  EditorNeeds needs() const override {
    EditorNeeds needs = LayeredEditor::needs();
    // C, the protected matrix, its eigenvectors, the system in the null space, the stored basis
    needs.solve_matrices = 5;
    return needs;
  }

  std::vector<WeightId> targets(const ModelConfig& config) const override {
    std::vector<WeightId> ids = LayeredEditor::targets(config);
    for (const WeightId& id : ids)
      if (config.has_experts(id.layer))
        throw ConfigError(cat("editor.layers: ", id.layer,
                              ": expected a layer without experts, whose keys betaedit has ",
                              "no null space of: use alphaedit"));
    return ids;
  }

 protected:
  LayerSolution solve(const EditContext& context, const LayerProblem& problem) const override {
    return solve_in_subspace({.basis_FQ = basis(context, problem),
                              .keys_FN = problem.keys_FN,
                              .history_FM = problem.history_FM,
                              .residuals_DN = problem.residuals_DN});
  }

 private:
  /// Returns B with B B^T = P (l1 P C P + l2 I)^{-1} P. It is kept until P changes.
  const Tensor& basis(const EditContext& context, const LayerProblem& problem) const {
    const int64_t n_earlier = problem.history_FM.defined() ? problem.history_FM.size(1) : 0;
    const int64_t n_keys = n_earlier - n_earlier % options_.refresh;
    BasisOfKeys& kept = context.kept<BasisOfLayer>()[problem.layer];
    if (kept.n_keys == n_keys) return kept.basis_FQ;
    const Tensor lower_FF = context.covariance_factor(problem.layer);
    Tensor protected_FF = torch::matmul(lower_FF, lower_FF.t()).mul_(options_.covariance_weight);
    if (n_keys > 0) {
      const Tensor keys_FM = problem.history_FM.narrow(1, 0, n_keys);
      protected_FF.addmm_(keys_FM, keys_FM.t(), /*beta=*/1, /*alpha=*/1.0 / static_cast<double>(n_keys));
    }
    protected_FF.div_(n_keys > 0 ? 1 + options_.covariance_weight : options_.covariance_weight);
    const NullSpace space =
        make_null_space(protected_FF, options_.rule, cat("layer ", problem.layer), KeptBasis::kNullSpace);
    kept = {n_keys, whitened_basis(space.basis_FQ, lower_FF, options_.covariance_weight, options_.ridge)};
    return kept.basis_FQ;
  }

  BetaOptions options_;
};

}  // namespace

std::unique_ptr<Editor> make_betaedit(ConfigSection& editor) {
  LayeredOptions layered;
  layered.keeps_solved_keys = true;
  layered = parse_layered_options(editor, std::move(layered));
  BetaOptions options;
  options.rule = parse_null_space_rule(editor);
  options.covariance_weight = read(editor, LayeredSpec::kBetaCovarianceWeight);
  options.ridge = read(editor, LayeredSpec::kBetaRidge);
  options.refresh = read(editor, LayeredSpec::kRefresh);
  return std::make_unique<BetaEditor>(std::move(layered), options);
}

}  // namespace lancet
