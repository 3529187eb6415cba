// The mixer of Mamba-2 (arXiv 2405.21060), with the factors by which Falcon-H1 multiplies its projections.
#include <torch/types.h>

#include "blocks/scaled.h"
#include "lancet/kernels/decoder_ops.h"
#include "mixer_form.h"
#include "state_space.h"

namespace lancet {
namespace {

using enum WeightKind;

class StateSpaceForm : public MixerForm {
 public:
  using MixerForm::MixerForm;

  MixerTokens project(const Tensor& x) const override {
    const MixerFactors& factors = sizes_.factors;
    return {torch::cat({projected(x, kMixerValue, factors.value), projected(x, kMixerKey, factors.key),
                        projected(x, kMixerQuery, factors.query)},
                       -1),
            projected(x, kMixerStep, factors.step)};
  }

  RuleResult run(const MixerTokens& convolved, const Tensor& left_out_R1T, const Tensor& state_RHKV,
                 StateAfter after) const override {
    const at::ScalarType precise = precise_type(convolved.channels);
    const std::vector<Tensor> parts =
        at::silu(convolved.channels)
            .to(precise)
            .split_with_sizes({sizes_.value_size(), sizes_.key_size(), sizes_.key_size()}, 2);
    const auto of_heads = [&](WeightKind kind) { return w_[kind].to(precise).unsqueeze(1); };
    Tensor step_RHT = at::softplus(convolved.scalars.transpose(1, 2).to(precise) + of_heads(kMixerDecayBias));
    if (sizes_.least_step > 0 || std::isfinite(sizes_.most_step))
      step_RHT = step_RHT.clamp(sizes_.least_step, sizes_.most_step);
    if (left_out_R1T.defined()) step_RHT = step_RHT.masked_fill(left_out_R1T, 0);
    const Tensor value_RHTV = by_heads(parts[0], sizes_.value_dim);
    const StateSpaceTokens tokens{.query_RGTK = by_heads(parts[2], sizes_.key_dim),
                                  .key_RGTK = by_heads(parts[1], sizes_.key_dim),
                                  .value_RHTV = value_RHTV * step_RHT.unsqueeze(3),
                                  .decay_RHT = -of_heads(kMixerDecayScale).exp() * step_RHT};
    RuleResult result = state_space(tokens, state_RHKV, after);
    result.out_RHTV = result.out_RHTV + value_RHTV * of_heads(kMixerSkip).unsqueeze(2);
    return result;
  }

  Tensor finished(const Tensor& mixed, const Tensor& x) const override {
    const at::ScalarType precise = precise_type(mixed);
    const Tensor gate = at::silu(projected(x, kMixerGate, sizes_.factors.gate).to(precise)), own = mixed.to(precise);
    switch (sizes_.norm) {
      case MixerNorm::kNone:
        return (own * gate).to(mixed.scalar_type());
      case MixerNorm::kGateFirst:
        return normed(own * gate).to(mixed.scalar_type());
      case MixerNorm::kNormFirst:
        return (normed(own) * gate).to(mixed.scalar_type());
    }
    return {};
  }

 private:
  Tensor projected(const Tensor& x, WeightKind kind, double factor) const { return scaled(w_.linear(x, kind), factor); }

  /// Norms each group of numbers separately.
  Tensor normed(const Tensor& x) const {
    const Tensor groups = x.unflatten(-1, {sizes_.norm_groups, -1});
    const Tensor even = groups * (groups.square().mean(-1, /*keepdim=*/true) + eps_).rsqrt();
    return even.flatten(-2) * w_[kMixerNorm].to(x.scalar_type());
  }
};

}  // namespace

std::unique_ptr<MixerForm> state_space_form(const ModelConfig& config, const LayerWeights& weights) {
  return std::make_unique<StateSpaceForm>(config, weights);
}

}  // namespace lancet
