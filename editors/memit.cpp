// MEMIT: mass editing of facts by ridge updates of several MLP down-projections. Source: Meng et al., arXiv 2210.07229,
// algorithm 1. z* of every request once, on the unedited weights; then for each layer, ascending: keys and the residual
// that is left, with the weights as they are by now; Delta = (R / layers left) K^T (lambda C + K K^T)^{-1}. Differs
// from the reference: values in batches, solves in the smaller space (values.h, solvers.h); keys that two requests
// nearly share are reported.
#include <torch/types.h>

#include <algorithm>

#include "editors.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

struct MemitOptions {
  std::vector<int64_t> layers;       ///< ascending; values are optimised at the output of the last
  double covariance_weight = 15000;  ///< lambda; default: the published Llama configurations
  ValueOptions values;
  ContextOptions contexts;
};

/// Two requests whose keys have a larger cosine pull one key to two values.
constexpr double kSharedKeyCosine = 0.99;

std::vector<std::string> shared_key_warnings(const Tensor& keys_FN, std::span<const PreparedRequest> requests) {
  const Tensor unit = keys_FN / keys_FN.norm(2, 0, /*keepdim=*/true);
  const Tensor pairs = (torch::matmul(unit.t(), unit).triu(1) > kSharedKeyCosine).nonzero().to(Placement::host());
  std::vector<std::string> warnings;
  for (int64_t i = 0; i < pairs.size(0); ++i) {
    const auto id = [&](int64_t side) { return requests[static_cast<size_t>(pairs[i][side].item<int64_t>())].id; };
    warnings.push_back(cat("requests ", id(0), " and ", id(1), " have nearly the same key (cosine > ", kSharedKeyCosine,
                           "): each pulls it to its own value, and neither may be reached"));
  }
  return warnings;
}

class MemitEditor final : public Editor {
 public:
  explicit MemitEditor(MemitOptions options) : options_(std::move(options)) {}

  EditorNeeds needs() const override { return {.subject = true, .statistics = true}; }
  const ContextOptions& contexts() const override { return options_.contexts; }

  std::vector<WeightId> targets(const ModelConfig& config) const override {
    std::vector<WeightId> ids;
    for (const int64_t layer : options_.layers) {
      if (layer >= config.n_layers - 1)
        throw ConfigError(cat("editor.layers: ", layer, ": expected 0 to ", config.n_layers - 2, ": the model has ",
                              config.n_layers,
                              " layers, and a value needs at least one layer above it to act through"));
      ids.push_back({WeightKind::kDown, layer});
    }
    return ids;
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    const std::vector<PreparedRequest> prepared = context.prepare(requests);
    const std::vector<int64_t>& layers = options_.layers;
    const OptimizedValues values = context.optimize_values(prepared, layers.back(), options_.values);
    EditOutcome outcome = describe(values);

    Progress progress("weights", static_cast<int64_t>(layers.size()), "layers");
    for (size_t i = 0; i < layers.size(); ++i) {
      const Tensor keys_FN = context.collect_keys(prepared, layers[i]);
      if (i == 0) outcome.warnings = shared_key_warnings(keys_FN, prepared);
      const Tensor residuals_DN = residuals(context, prepared, values.z_ND, i);
      transaction.apply({WeightKind::kDown, layers[i]}, context.solve(layers[i], [&] {
        return solve_ridge({.lower_FF = context.covariance_factor(layers[i]),
                            .covariance_weight = options_.covariance_weight,
                            .keys_FN = keys_FN,
                            .history_FM = {},
                            .residuals_DN = residuals_DN});
      }));
      progress.advance();
    }
    state.edits += static_cast<int64_t>(requests.size());
    return outcome;
  }

 private:
  /// What is left of z* - h at the last edited layer, shared evenly among the layers still to come: [D, N], on layer
  /// i's device.
  Tensor residuals(const EditContext& context, std::span<const PreparedRequest> prepared, const Tensor& z_ND,
                   size_t i) const {
    const torch::NoGradGuard no_grad;
    const int64_t last = options_.layers.back();
    const Tensor left_ND = context.to_solve_device(z_ND, last) - context.collect_hidden(prepared, last);
    const double layers_left = static_cast<double>(options_.layers.size() - i);
    return context.to_solve_device(left_ND / layers_left, options_.layers[i]).t().contiguous();
  }

  static EditOutcome describe(const OptimizedValues& values) {
    EditOutcome outcome;
    outcome.batching = values.batching;
    for (size_t i = 0; i < values.losses.size(); ++i)
      outcome.requests.push_back({.steps = static_cast<int64_t>(values.losses[i].size()),
                                  .initial_loss = values.losses[i].front().total,
                                  .final_loss = values.losses[i].back().total,
                                  .initial_norm = values.initial_norms[i],
                                  .delta_norm = values.delta_norms[i]});
    return outcome;
  }

  MemitOptions options_;
};

}  // namespace

std::unique_ptr<Editor> make_memit(ConfigSection& editor) {
  MemitOptions options;
  options.layers = editor.integers("layers", {.min = 0});
  if (options.layers.empty()) editor.problem("layers", "expected at least one layer");
  std::sort(options.layers.begin(), options.layers.end());
  if (std::adjacent_find(options.layers.begin(), options.layers.end()) != options.layers.end())
    editor.problem("layers", "a layer stands twice");
  options.covariance_weight = editor.number("covariance_weight", {.min = 1e-300}, options.covariance_weight);
  options.values = parse_value_options(editor.section("values"));
  options.contexts = parse_context_options(editor);
  return std::make_unique<MemitEditor>(std::move(options));
}

}  // namespace lancet
