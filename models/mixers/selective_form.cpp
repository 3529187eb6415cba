// The mixer of Jamba (arXiv 2403.19887), which is Mamba-1's: steps, keys and queries are computed from the convolved
// channels, and normed.
#include <torch/types.h>

#include "lancet/kernels/decoder_ops.h"
#include "mixer_form.h"
#include "selective_space.h"

namespace lancet {
namespace {

using enum WeightKind;

class SelectiveForm : public MixerForm {
 public:
  using MixerForm::MixerForm;

  MixerTokens project(const Tensor& x) const override {
    const Tensor channels = w_.linear(x, kMixerValue);
    return {channels, channels.narrow(-1, 0, 0)};
  }

  RuleResult run(const MixerTokens& convolved, const Tensor& left_out_R1T, const Tensor& state_RHKV,
                 StateAfter after) const override {
    const at::ScalarType precise = precise_type(convolved.channels);
    const Tensor x_RTC = at::silu(convolved.channels);
    const auto normed = [&](WeightKind matrix, WeightKind norm) {
      return rms_norm(w_.linear(x_RTC, matrix), w_[norm], eps_);
    };
    const Tensor plain_RHT = w_.linear(normed(kMixerStepDown, kMixerStepNorm), kMixerStep).mT().to(precise);
    Tensor step_RHT = at::softplus(plain_RHT + w_[kMixerDecayBias].to(precise).unsqueeze(1));
    if (left_out_R1T.defined()) step_RHT = step_RHT.masked_fill(left_out_R1T, 0);
    const Tensor value_RHT = x_RTC.mT().to(precise);
    const SelectiveTokens tokens{
        .query_RTK = normed(kMixerQuery, kMixerQueryNorm).to(precise),
        .key_RTK = normed(kMixerKey, kMixerKeyNorm).to(precise),
        .value_RHT = value_RHT * step_RHT,
        .step_RHT = step_RHT,
        .rate_HK = -w_[kMixerDecayScale].to(precise).exp().unflatten(0, {sizes_.value_heads, sizes_.key_dim})};
    RuleResult result = selective_space(tokens, state_RHKV, after);
    result.out_RHTV = result.out_RHTV + (value_RHT * w_[kMixerSkip].to(precise).unsqueeze(1)).unsqueeze(3);
    return result;
  }

  Tensor finished(const Tensor& mixed, const Tensor& x) const override {
    return mixed * at::silu(w_.linear(x, kMixerGate));
  }
};

}  // namespace

std::unique_ptr<MixerForm> selective_form(const ModelConfig& config, const LayerWeights& weights) {
  return std::make_unique<SelectiveForm>(config, weights);
}

}  // namespace lancet
