// The mixer of Qwen3-Next: the gated delta rule, and a gated norm.
#include <torch/types.h>

#include "delta_rule.h"
#include "lancet/kernels/decoder_ops.h"
#include "mixer_form.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr double kLeastSquare = 1e-6;  // smallest squared length of a query or key

class DeltaForm : public MixerForm {
 public:
  using MixerForm::MixerForm;

  MixerTokens project(const Tensor& x) const override {
    return {torch::cat({w_.linear(x, kMixerQuery), w_.linear(x, kMixerKey), w_.linear(x, kMixerValue)}, -1),
            torch::cat({w_.linear(x, kMixerRate), w_.linear(x, kMixerDecay)}, -1)};
  }

  RuleResult run(const MixerTokens& convolved, const Tensor& left_out_R1T, const Tensor& state_RHKV,
                 StateAfter after) const override {
    DeltaTokens tokens = delta_tokens(at::silu(convolved.channels), convolved.scalars);
    if (left_out_R1T.defined()) {
      tokens.rate_RHT = tokens.rate_RHT.masked_fill(left_out_R1T, 0);
      tokens.decay_RHT = tokens.decay_RHT.masked_fill(left_out_R1T, 0);
    }
    return delta_rule(tokens, state_RHKV, after);
  }

  Tensor finished(const Tensor& mixed, const Tensor& x) const override {
    const Tensor normed = rms_norm(mixed.unflatten(-1, {-1, sizes_.value_dim}), w_[kMixerNorm], eps_).view_as(mixed);
    const Tensor gate = w_.linear(x, kMixerGate);
    return (normed * at::silu(gate.to(precise_type(gate)))).to(mixed.scalar_type());
  }

 private:
  DeltaTokens delta_tokens(const Tensor& channels_RTC, const Tensor& scalars_RT2H) const {
    const at::ScalarType precise = precise_type(channels_RTC);
    const std::vector<Tensor> parts =
        channels_RTC.split_with_sizes({sizes_.key_size(), sizes_.key_size(), sizes_.value_size()}, 2);
    const auto unit = [&](const Tensor& part) {
      const Tensor x_RHTK = by_heads(part, sizes_.key_dim).to(precise);
      const Tensor each = x_RHTK * (x_RHTK.square().sum(3, /*keepdim=*/true) + kLeastSquare).rsqrt();
      const int64_t sharing = sizes_.value_heads / sizes_.key_heads;
      return sizes_.tiled_values ? each.repeat({1, sharing, 1, 1}) : each.repeat_interleave(sharing, 1);
    };
    const std::vector<Tensor> scalars = scalars_RT2H.transpose(1, 2).chunk(2, 1);
    const auto of_heads = [&](WeightKind kind) { return w_[kind].to(precise).unsqueeze(1); };
    return {.query_RHTK = unit(parts[0]) / std::sqrt(static_cast<double>(sizes_.key_dim)),
            .key_RHTK = unit(parts[1]),
            .value_RHTV = by_heads(parts[2], sizes_.value_dim).to(precise),
            .rate_RHT = scalars[0].sigmoid().to(precise),
            .decay_RHT =
                -of_heads(kMixerDecayScale).exp() * at::softplus(scalars[1].to(precise) + of_heads(kMixerDecayBias))};
  }
};

}  // namespace

std::unique_ptr<MixerForm> delta_form(const ModelConfig& config, const LayerWeights& weights) {
  return std::make_unique<DeltaForm>(config, weights);
}

}  // namespace lancet
