#include "lancet/editor_parts/one_step.h"

#include <torch/types.h>

#include <cmath>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

Tensor joined(const TokenGradients& tokens) { return torch::cat({tokens.inputs_MI, tokens.gradients_MO}, 1); }

TokenGradients rows_of(const TokenGradients& tokens, int64_t begin, int64_t size) {
  return {tokens.inputs_MI.narrow(0, begin, size), tokens.gradients_MO.narrow(0, begin, size)};
}

}  // namespace

std::string normaliser_name(const TokenGradients& like) {
  return cat("normaliser.", like.inputs_MI.size(1), "x", like.gradients_MO.size(1));
}

RunningStatistics::RunningStatistics(EditorState& state, const TokenGradients& like)
    : count_(state.tensors[cat(normaliser_name(like), ".count")]),
      mean_(state.tensors[cat(normaliser_name(like), ".mean")]),
      squares_(state.tensors[cat(normaliser_name(like), ".squares")]) {
  if (count_.defined()) return;
  const int64_t size = like.inputs_MI.size(1) + like.gradients_MO.size(1);
  count_ = torch::zeros({}, torch::kDouble);
  mean_ = torch::zeros({size}, torch::kDouble);
  squares_ = torch::zeros({size}, torch::kDouble);
}

void RunningStatistics::add_rows(const TokenGradients& tokens, Variance variance) {
  const Tensor rows = joined(tokens);
  const double before = count(), more = static_cast<double>(rows.size(0)), now = before + more;
  const Tensor drift = rows.mean(0).to(mean_.device()) - mean_;
  mean_ = mean_ + more / now * drift;
  if (more > 1) squares_ = squares_ + more * rows.var(0, variance == Variance::kSample).to(mean_.device());
  squares_ = squares_ + before * more / now * drift.square();
  count_ = torch::full({}, now, torch::kDouble);
}

TokenGradients RunningStatistics::standardise(const TokenGradients& tokens) const {
  const Tensor rows = joined(tokens);
  const Tensor deviation = (squares_ / (count_ - 1 + kOneStepEps)).sqrt() + kOneStepEps;
  const Tensor unit = (rows - mean_.to(rows.device())) / deviation.to(rows.device());
  const int64_t split = tokens.inputs_MI.size(1);
  return {unit.slice(1, 0, split), unit.slice(1, split)};
}

Tensor RunningStatistics::centred_gradients(const TokenGradients& tokens) const {
  return tokens.gradients_MO - mean_.slice(0, tokens.inputs_MI.size(1)).to(tokens.gradients_MO.device());
}

OneStepOptions parse_one_step(ConfigSection& editor, ModuleKinds kinds, AutomaticModules automatic) {
  OneStepOptions options;
  options.automatic = automatic;
  options.lr = read(editor, GradientSpec::kUltraLr);
  options.capture.batch = read(editor, GradientSpec::kUltraBatch);
  options.capture.tokens = read<TokenChoice>(editor, GradientSpec::kTokens);
  options.modules = parse_modules(editor, kinds);
  options.end = parse_target_end(editor);
  return options;
}

EditOutcome OneStepEditor::edit(const EditContext& context, std::span<const EditRequest> requests, EditorState& state,
                                WeightTransaction& transaction) const {
  const std::vector<WeightId> modules = targets(context.config());
  CapturedGradients captured =
      context.capture_token_gradients(context.tokenize(requests, target_rule()), modules, options_.capture);
  int64_t begin = 0;
  for (const int64_t size : captured.pass_sizes) {
    for (const TokenGradients& tokens : captured.weights) note(state, rows_of(tokens, begin, size));
    begin += size;
  }
  Progress progress("weights", static_cast<int64_t>(modules.size()), "weights");
  for (size_t i = 0; i < modules.size(); ++i) {
    const TokenGradients& tokens = captured.weights[i];
    transaction.apply(modules[i], context.solve(modules[i].layer, [&] {
      const TokenGradients unit = normalise(context, state, tokens);
      const Tensor strength_M1 = -options_.lr * unit.inputs_MI.square().sum(1, /*keepdim=*/true);
      // (X^T X + ridge I)^-1 X^T V equals the solution for ridge = 1 with X and V scaled
      const double scale = 1 / std::sqrt(options_.ridge);
      return solve_least_squares(scale * tokens.inputs_MI, scale * strength_M1 * unit.gradients_MO);
    }));
    captured.weights[i] = {};
    progress.advance();
  }
  EditOutcome outcome;
  outcome.columns = std::move(captured.owners);
  for (const double loss : captured.losses) outcome.requests.push_back({.steps = 1, .initial_loss = loss});
  state.edits += static_cast<int64_t>(requests.size());
  return outcome;
}

}  // namespace lancet
