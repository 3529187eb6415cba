// UltraEdit: one backward pass for a batch, no subject, no optimisation. Source: Gu et al., arXiv 2505.14679: of each
// projection the inputs X and the gradients G at its outputs, token by token, normalised by running statistics that
// earlier batches share; V = -lr |Xn|^2 Gn; Delta^T = (X^T X + I)^{-1} X^T V with X as it is. Differs from the
// reference: solved with as many rows as there are tokens, nothing on disk; a mini-batch of one token has variance 0.
#include <torch/types.h>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/editing/editor.h"
#include "lancet/editor_parts/modules.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

/// Epsilon of the reference, which computes in f32 always.
constexpr double kEps = 1.1920928955078125e-07;

/// Running mean and deviation of the rows [X, G] of all projections of one shape, in an editor's state.
class Normaliser {
 public:
  Normaliser(EditorState& state, const TokenGradients& like)
      : count_(state.tensors[cat(name(like), ".count")]),
        mean_(state.tensors[cat(name(like), ".mean")]),
        squares_(state.tensors[cat(name(like), ".squares")]) {
    if (count_.defined()) return;
    const int64_t size = like.inputs_MI.size(1) + like.gradients_MO.size(1);
    count_ = torch::zeros({}, torch::kDouble);
    mean_ = torch::zeros({size}, torch::kDouble);
    squares_ = torch::zeros({size}, torch::kDouble);
  }

  void update(const TokenGradients& tokens) {
    const Tensor rows = joined(tokens);
    const double before = count_.item<double>(), more = static_cast<double>(rows.size(0)), now = before + more;
    const Tensor drift = rows.mean(0).to(mean_.device()) - mean_;
    mean_ = mean_ + more / now * drift;
    if (more > 1) squares_ = squares_ + more * rows.var(0).to(mean_.device());
    squares_ = squares_ + before * more / now * drift.square();
    count_ = torch::full({}, now, torch::kDouble);
  }

  /// The rows of X and of G, normalised.
  TokenGradients normalised(const TokenGradients& tokens) const {
    const Tensor rows = joined(tokens);
    const Tensor deviation = (squares_ / (count_ - 1 + kEps)).sqrt() + kEps;
    const Tensor unit = (rows - mean_.to(rows.device())) / deviation.to(rows.device());
    const int64_t split = tokens.inputs_MI.size(1);
    return {unit.slice(1, 0, split), unit.slice(1, split)};
  }

 private:
  static std::string name(const TokenGradients& like) {
    return cat("normaliser.", like.inputs_MI.size(1), "x", like.gradients_MO.size(1));
  }
  static Tensor joined(const TokenGradients& tokens) { return torch::cat({tokens.inputs_MI, tokens.gradients_MO}, 1); }

  Tensor &count_, &mean_, &squares_;
};

class UltraEditor final : public Editor {
 public:
  UltraEditor(std::optional<std::vector<WeightId>> modules, double lr, const CaptureOptions& capture, TargetEnd end)
      : modules_(std::move(modules)), lr_(lr), capture_(capture), end_(end) {}

  EditorNeeds needs() const override {
    return {.subject = false, .statistics = false, .backward = BackwardNeeds{capture_.batch, /*trains_dense=*/false}};
  }
  const ContextOptions* contexts() const override { return nullptr; }
  const ValueOptions* values() const override { return nullptr; }
  TargetRule target_rule() const override { return {.end = end_}; }
  std::vector<WeightId> targets(const ModelConfig& config) const override {
    return modules_of(modules_, AutomaticModules::kMiddle, config);
  }

  EditOutcome edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                   WeightTransaction& transaction) const override {
    const std::vector<WeightId> modules = targets(context.config());
    CapturedGradients captured =
        context.capture_token_gradients(context.tokenize(requests, target_rule()), modules, capture_);
    int64_t begin = 0;
    for (const int64_t size : captured.pass_sizes) {
      for (const TokenGradients& tokens : captured.weights)
        Normaliser(state, tokens)
            .update({tokens.inputs_MI.narrow(0, begin, size), tokens.gradients_MO.narrow(0, begin, size)});
      begin += size;
    }
    Progress progress("weights", static_cast<int64_t>(modules.size()), "weights");
    for (size_t i = 0; i < modules.size(); ++i) {
      transaction.apply(modules[i], context.solve(modules[i].layer, [&] { return solve(captured.weights[i], state); }));
      captured.weights[i] = {};
      progress.advance();
    }
    EditOutcome outcome;
    outcome.columns = std::move(captured.owners);
    for (const double loss : captured.losses) outcome.requests.push_back({.steps = 1, .initial_loss = loss});
    state.edits += static_cast<int64_t>(requests.size());
    return outcome;
  }

 private:
  WeightDelta solve(const TokenGradients& tokens, EditorState& state) const {
    const TokenGradients unit = Normaliser(state, tokens).normalised(tokens);
    const Tensor strength_M1 = -lr_ * unit.inputs_MI.square().sum(1, /*keepdim=*/true);
    return solve_least_squares(tokens.inputs_MI, strength_M1 * unit.gradients_MO);
  }

  std::optional<std::vector<WeightId>> modules_;
  double lr_;
  CaptureOptions capture_;
  TargetEnd end_;
};

}  // namespace

std::unique_ptr<Editor> make_ultraedit(ConfigSection& editor) {
  CaptureOptions options;
  const double lr = read(editor, GradientSpec::kUltraLr);
  options.batch = read(editor, GradientSpec::kUltraBatch);
  options.tokens = read<TokenChoice>(editor, GradientSpec::kTokens);
  return std::make_unique<UltraEditor>(parse_modules(editor), lr, options, parse_target_end(editor));
}

}  // namespace lancet
