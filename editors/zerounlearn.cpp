// ZeroUnlearn: changes a layer's outputs so that they no longer give the old answers of some facts, while outputs on
// text stay as they are. Source: github.com/XMUDeepLIT/ZeroUnlearn @deff011: W <- D W, layer after layer, with
//   D = P ((c W C + (W K + R) K^T + l W) W^T) (W (c C + K K^T + l I) W^T)^{-1},  P = (1 + eps) I - v v^T.
// v spans the values of the old answers, found at the projection's own output. R moves the outputs for the facts' keys
// K towards the values of the neutral answers, which are found once, at the last layer's output; each layer takes an
// even share of what is left. W S W^T + R K^T W^T, with S = c C + K K^T + l I, is the first factor without P, so D = P
// (I + R (W K)^T (W S W^T)^{-1}). Differs from the reference: the moments of outputs and keys over text are computed as
// W C, which they equal; directions that the values have only because of rounding stay in P; the weight of the facts is
// 1, and the other weights are divided by the reference's weight of the facts.
#include <torch/types.h>

#include <numeric>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/editor_parts/automatic_choices.h"
#include "lancet/editor_parts/automatic_options.h"
#include "lancet/editor_parts/layer_passes.h"
#include "lancet/editor_parts/span_of.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

constexpr double kKept = 0.01;  ///< eps

/// The data of one layer, on its solve device.
struct Unlearning {
  Tensor weight_DF;
  Tensor lower_FF;  ///< L of C
  Tensor keys_FN;
  Tensor residuals_DN;
  Tensor forgotten_DN;  ///< values of the old answers
};

struct ZeroOptions {
  std::optional<std::vector<int64_t>> layers;
  ValueOptions values;
  ContextOptions contexts;
  TargetEnd end = TargetEnd::kNone;
  double covariance_weight = 0;  ///< c
  double identity_weight = 0;    ///< l
};

/// Returns the requests with their old answers as targets.
std::vector<EditRequest> with_old_answers(std::span<const EditRequest> requests) {
  std::vector<EditRequest> old(requests.begin(), requests.end());
  for (EditRequest& request : old) request.target = request.target_true.value();
  return old;
}

Tensor exact_weight(const WeightTransaction& transaction, WeightId id) {
  const WeightTransaction::Entry* entry = transaction.find(id);
  return entry != nullptr ? entry->master : transaction.unedited(id);
}

class ZeroUnlearnEditor final : public Editor {
 public:
  explicit ZeroUnlearnEditor(ZeroOptions options) : options_(std::move(options)) {
    old_values_ = options_.values;
    old_values_.site = ValueSite::kMlpOut;
  }

  EditorNeeds needs() const override { return {.old_answer = true, .solve_matrices = 1}; }
  const ContextOptions* contexts() const override { return &options_.contexts; }
  const ValueOptions* values() const override { return &options_.values; }
  TargetRule target_rule() const override { return {.end = options_.end, .kept = options_.values.kept_prompts}; }
  std::vector<WeightId> targets(const ModelConfig& config) const override {
    std::vector<WeightId> ids;
    for (const int64_t layer : layers_of(config)) ids.push_back({WeightKind::kDown, layer});
    return ids;
  }
  std::vector<int64_t> value_layers(const ModelConfig& config) const override {
    std::vector<int64_t> layers = layers_of(config);
    layers.insert(layers.begin(), layers.back());
    return layers;
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    const std::vector<EditRequest> answered = with_old_answers(requests);
    const std::vector<PreparedRequest> neutral = context.prepare(requests, target_rule());
    const std::vector<PreparedRequest> old = context.prepare(answered, target_rule());
    const std::vector<int64_t> layers = layers_of(context.config());
    const OptimizedValues found = context.optimize_values(neutral, layers.back(), options_.values);
    const torch::NoGradGuard no_grad;
    std::vector<int64_t> places(requests.size());
    std::iota(places.begin(), places.end(), 0);
    RealisedShares realised(context, std::ssize(requests));
    RequestStates states = context.states_of(neutral);
    Progress progress("weights", std::ssize(layers), "layers");
    for (size_t i = 0; i < layers.size(); ++i) {
      const WeightId id{WeightKind::kDown, layers[i]};
      const auto here = [&](const Tensor& tensor) { return context.to_solve_device(tensor, id.layer).to(at::kDouble); };
      Unlearning part;
      part.forgotten_DN = here(values_of(context, old, id.layer)).t();
      states.keep_from(id.layer);
      part.keys_FN = states.collect_keys(id.layer);
      const Tensor now_ND =
          states.collect({value_point(context.config(), options_.values.site), layers.back()}, ContextMean::kPlain);
      const double scale = projection_scale(context.config(), options_.values.site);
      const auto left = static_cast<double>(layers.size() - i);
      part.residuals_DN = ((here(found.z_ND) - here(now_ND)) / (scale * left)).t();
      part.weight_DF = here(exact_weight(transaction, id));
      const WeightDelta applied = transaction.apply(id, context.solve(id.layer, [&] {
        part.lower_FF = context.covariance_factor(id.layer);
        return unlearn(part);
      }));
      if (i == 0) realised.note_missing(left * part.residuals_DN, places);
      realised.note({id.layer, part.keys_FN, part.residuals_DN, i + 1 == layers.size(), applied}, places);
      progress.advance();
    }
    EditOutcome outcome;
    outcome.requests.resize(requests.size());
    outcome.note_values(places, found);
    for (const int64_t place : places)
      realised.write_to(outcome.requests[static_cast<size_t>(place)], std::span(&place, 1));
    state.edits += std::ssize(requests);
    return outcome;
  }

 private:
  std::vector<int64_t> layers_of(const ModelConfig& config) const {
    const std::vector<int64_t> layers = options_.layers.value_or(automatic_late_layers(config));
    for (const int64_t layer : layers) {
      check_value_layer(config, layer);
      if (config.has_experts(layer))
        throw ConfigError(cat("editor.layers: ", layer, ": expected a layer without experts, whose outputs ",
                              "zerounlearn has no map of: use memit"));
    }
    return layers;
  }

  /// Returns the values of the old answers at the layer's own output, on the current weights.
  Tensor values_of(const EditContext& context, std::span<const PreparedRequest> old, int64_t layer) const {
    const torch::AutoGradMode with_gradients(true);
    return context.optimize_values(old, layer, old_values_).z_ND;
  }

  DenseDelta unlearn(const Unlearning& part) const {
    const Tensor& w = part.weight_DF;
    const Tensor wk_DN = torch::matmul(w, part.keys_FN), wl_DF = torch::matmul(w, part.lower_FF);
    Tensor system_DD = torch::matmul(wl_DF, wl_DF.t()).mul_(options_.covariance_weight);
    system_DD.addmm_(wk_DN, wk_DN.t()).addmm_(w, w.t(), /*beta=*/1, /*alpha=*/options_.identity_weight);
    const Tensor right_DN =
        solve_positive(std::move(system_DD), wk_DN,
                       "zerounlearn: the weight has dependent outputs, or has NaN or Inf: use other layers");
    const Tensor moved_DD = torch::matmul(part.residuals_DN, right_DN.t());
    const Tensor mapped_DF = w + torch::matmul(moved_DD, w);
    const Tensor v_DR = span_of(part.forgotten_DN);
    if (v_DR.size(1) == w.size(0))
      throw NumericError(cat("zerounlearn: the old answers' values span all ", w.size(0),
                             " outputs, of which nothing would be left: expected fewer facts in a batch"));
    return {(1 + kKept) * mapped_DF - torch::matmul(v_DR, torch::matmul(v_DR.t(), mapped_DF)) - w};
  }

  ZeroOptions options_;
  ValueOptions old_values_;
};

}  // namespace

std::unique_ptr<Editor> make_zerounlearn(ConfigSection& editor) {
  ZeroOptions options;
  options.layers = parse_layers(editor);
  options.values = parse_value_options(editor.section(LayeredSpec::kValues.key));
  options.contexts = parse_context_options(editor);
  options.end = parse_target_end(editor);
  options.covariance_weight = read(editor, LayeredSpec::kZeroCovarianceWeight);
  options.identity_weight = read(editor, LayeredSpec::kZeroIdentityWeight);
  return std::make_unique<ZeroUnlearnEditor>(std::move(options));
}

}  // namespace lancet
