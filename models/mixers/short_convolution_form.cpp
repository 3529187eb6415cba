// The mixer of LFM2: a gate, a convolution over few tokens, another gate. It only keeps its last tokens.
#include <torch/types.h>

#include "mixer_form.h"

namespace lancet {
namespace {

using enum WeightKind;

class ShortConvolutionForm : public MixerForm {
 public:
  using MixerForm::MixerForm;

  MixerTokens project(const Tensor& x) const override {
    const Tensor gated = w_.linear(x, kMixerKey) * w_.linear(x, kMixerValue);
    return {gated, gated.narrow(-1, 0, 0)};
  }

  RuleResult run(const MixerTokens& convolved, const Tensor&, const Tensor&, StateAfter) const override {
    return {by_heads(convolved.channels, sizes_.value_dim), {}};
  }

  Tensor finished(const Tensor& mixed, const Tensor& x) const override { return w_.linear(x, kMixerGate) * mixed; }
};

}  // namespace

std::unique_ptr<MixerForm> short_convolution_form(const ModelConfig& config, const LayerWeights& weights) {
  return std::make_unique<ShortConvolutionForm>(config, weights);
}

}  // namespace lancet
