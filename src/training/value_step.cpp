#include "value_step.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

namespace lancet {
namespace {

Tensor gradient_of(const Tensor& total_A, const Tensor& leaf_AX) {
  return torch::autograd::grad({total_A.sum()}, {leaf_AX})[0];
}

}  // namespace

Tensor norms_of(const Tensor& rows_AX, int64_t n_vectors) { return rows_AX.unflatten(1, {n_vectors, -1}).norm(2, 2); }

ValueStep::ValueStep(ValueBatch& batch, const ValueOptions& options, ValueWatch watch, StepGraphs* graphs)
    : batch_(batch), options_(options), watch_(watch), graphs_(graphs), groups_(batch.groups()) {}

std::vector<Tensor> ValueStep::losses(size_t group, const StepInputs& inputs) const {
  const BatchLosses losses = batch_.losses(group, inputs.delta_AX, watch_);
  const Tensor nll_A = inputs.factor_A.defined() ? losses.nll_A * inputs.factor_A : losses.nll_A;
  const Tensor kl_A = options_.kl * losses.kl_A;
  const Tensor decay_A =
      (options_.weight_decay * norms_of(inputs.delta_AX, vectors_of(options_.site)) / inputs.initial_norm_AP.square())
          .sum(1)
          .to(nll_A.device());
  std::vector<Tensor> parts{nll_A + kl_A + decay_A, nll_A, kl_A, decay_A};
  if (watch_ == ValueWatch::kMissedTokens) parts.push_back(losses.missed_A);
  return parts;
}

std::vector<Tensor> ValueStep::measure(const StepInputs& inputs) {
  const size_t group = next_;
  next_ = (next_ + 1) % groups_.size();
  leaf_AX_ = total_A_ = gradient_AX_ = Tensor();
  if (graphs_ != nullptr && groups_[group].has_run) {
    const std::vector<Tensor>& results = replay(group, inputs);
    gradient_AX_ = results.front();
    return {results.begin() + 1, results.end()};
  }
  groups_[group].has_run = true;
  leaf_AX_ = inputs.delta_AX.detach().requires_grad_(true);
  std::vector<Tensor> parts = losses(group, {leaf_AX_, inputs.initial_norm_AP, inputs.factor_A});
  total_A_ = parts.front();
  return parts;
}

Tensor ValueStep::gradient() {
  if (!gradient_AX_.defined()) gradient_AX_ = gradient_of(total_A_, leaf_AX_);
  return gradient_AX_;
}

const std::vector<Tensor>& ValueStep::replay(size_t group, const StepInputs& inputs) {
  set_static_inputs(inputs);
  std::unique_ptr<StepGraph>& graph = groups_[group].graph;
  if (graph == nullptr)
    graph = graphs_->capture([this, group] {
      const std::vector<Tensor> parts = losses(group, static_);
      std::vector<Tensor> results{gradient_of(parts.front(), static_.delta_AX)};
      for (const Tensor& part : parts) results.push_back(part.detach());
      return results;
    });
  graph->replay();
  return graph->outputs();
}

void ValueStep::set_static_inputs(const StepInputs& inputs) {
  const torch::NoGradGuard no_grad;
  if (!static_.delta_AX.defined()) {
    static_ = {inputs.delta_AX.detach().clone().requires_grad_(true), inputs.initial_norm_AP,
               inputs.factor_A.defined() ? inputs.factor_A.clone() : Tensor()};
    seen_factor_A_ = inputs.factor_A;
    return;
  }
  static_.delta_AX.copy_(inputs.delta_AX);
  if (inputs.factor_A.defined() && !inputs.factor_A.is_same(seen_factor_A_)) {
    static_.factor_A.copy_(inputs.factor_A);
    seen_factor_A_ = inputs.factor_A;
  }
}

void ValueStep::forget_shapes() {
  groups_ = std::vector<GroupState>(batch_.groups());
  static_ = {};
  seen_factor_A_ = leaf_AX_ = total_A_ = gradient_AX_ = Tensor();
}

}  // namespace lancet
