#include "decoder_layer.h"

#include <torch/types.h>

#include <stdexcept>
#include <tuple>
#include <utility>

#include "blocks/experts.h"
#include "blocks/pointwise.h"
#include "blocks/scaled.h"
#include "mixers/recurrent_mixer.h"

namespace lancet {
namespace {

using enum WeightKind;

/// A run through the layer, which hooks may end.
class LayerRun {
 public:
  explicit LayerRun(const LayerContext& context) : context_(context), w_(context.weights) {}

  ResidualStream run(ResidualStream stream) {
    if (stream.added_BTD.defined() && touches(HookPoint::kBlockIn)) stream = {stream.sum(), {}};
    if (!pass(HookPoint::kBlockIn, stream.h_BTD)) return {};
    if (!context_.config.has_mixing(context_.layer)) return with_mlp_alone(std::move(stream));
    auto [h, x] = entered(std::exchange(stream, {}), kAttnNorm, kAttnNormBias);
    if (!pass(HookPoint::kAttnIn, x)) return {};
    Tensor attended = mixed(x);
    if (!attended.defined() || !pass(HookPoint::kAttnOut, attended)) return {};
    attended = after(attended, kAttnPostNorm, context_.config.attention_out_scale);
    h = take_places(h, context_.inputs.outputs);  // from here on only the tokens whose outputs are wanted
    if (!context_.config.has_mlp(context_.layer)) return left(std::move(h), std::move(attended));
    if (context_.config.order == BlockOrder::kSequential) {
      std::tie(h, x) = sum_and_normed(context_.config, h, attended, w_[kMlpNorm], w_[kMlpNormBias]);
    } else {
      x = w_[kMlpNorm].defined() ? before(h, kMlpNorm, kMlpNormBias) : take_places(x, context_.inputs.outputs);
      h = h + attended;
    }
    return left(std::move(h), mlp(std::move(x)));
  }

 private:
  ResidualStream with_mlp_alone(ResidualStream stream) const {
    auto [h, x] = entered(std::move(stream), kMlpNorm, kMlpNormBias);
    const OutputPlaces& outputs = context_.inputs.outputs;
    return left(take_places(h, outputs), mlp(take_places(x, outputs)));
  }

  /// Returns the layer's output; empty if the pass ends in the layer. `out`: what its last part adds; undefined: the
  /// pass ended.
  ResidualStream left(Tensor h, Tensor out) const {
    if (!out.defined()) return {};
    if (!touches(HookPoint::kBlockOut)) return {std::move(h), std::move(out)};
    h = h + out;
    if (!pass(HookPoint::kBlockOut, h)) return {};
    return {std::move(h), {}};
  }

  bool pass(HookPoint point, Tensor& value) const { return context_.pass(point, value); }

  bool touches(HookPoint point) const { return context_.hooks.touches({point, context_.layer}); }

  /// Returns the residual stream, and the input of the layer's first part.
  std::pair<Tensor, Tensor> entered(ResidualStream stream, WeightKind norm, WeightKind bias) const {
    if (!stream.added_BTD.defined()) return {stream.h_BTD, before(stream.h_BTD, norm, bias)};
    return sum_and_normed(context_.config, stream.h_BTD, stream.added_BTD, w_[norm], w_[bias]);
  }

  /// Returns the input of a block, from the residual stream.
  Tensor before(const Tensor& h, WeightKind norm, WeightKind bias) const {
    return has_norm(context_.config, w_[norm]) ? normed(context_.config, h, w_[norm], w_[bias]) : h;
  }

  /// Returns what a block adds to the residual stream.
  Tensor after(const Tensor& out, WeightKind norm, double scale) const {
    return scaled(w_[norm].defined() ? normed(context_.config, out, w_[norm], {}) : out, scale);
  }

  /// Returns the output of attention, of the recurrent mixer, or of both; undefined if the pass ends there.
  Tensor mixed(const Tensor& x) const {
    const ModelConfig& config = context_.config;
    Tensor attended;
    if (config.has_attention(context_.layer)) {
      attended = attention(context_, scaled(x, config.attention_in_scale));
      if (!attended.defined() || !pass(HookPoint::kAttnKey, attended)) return {};
      attended = w_.linear(attended, kAttnOut, kAttnOutBias);
      if (!config.has_recurrence(context_.layer)) return attended;
    }
    Tensor recalled = recurrent_mixer(context_, x);
    if (!pass(attended.defined() ? HookPoint::kMixerKey : HookPoint::kAttnKey, recalled)) return {};
    recalled = scaled(w_.linear(recalled, kMixerOut), config.recurrence.factors.out);
    return attended.defined() ? scaled(attended, config.recurrence.attention_factor) + recalled : recalled;
  }

  Tensor mlp(Tensor x) const {
    if (!pass(HookPoint::kMlpIn, x)) return {};
    Tensor out = w_[kRouter].defined() ? experts(x) : dense(x);
    if (!out.defined() || !pass(HookPoint::kMlpOut, out)) return {};
    return after(out, kMlpPostNorm, context_.config.mlp_out_scale);
  }

  /// Returns gates and ups from one product; undefined if each has its own product.
  Tensor gates_and_ups(const Tensor& x) const {
    if (!context_.config.gated_mlp || touches(HookPoint::kGateOut) || touches(HookPoint::kUpOut)) return {};
    return w_.linear_of_neighbours(x, kGateUp, kGateUpBias);
  }

  Tensor dense(const Tensor& x) const {
    Tensor key = key_of(x);
    if (!key.defined() || !pass(HookPoint::kMlpKey, key)) return {};
    return w_.linear(key, kDown, kDownBias);
  }

  Tensor key_of(const Tensor& x) const {
    if (const Tensor both = gates_and_ups(x); both.defined()) return mlp_key_of_both(context_.config, w_, both);
    Tensor gate;
    if (context_.config.gated_mlp) {
      gate = w_.linear(x, kGate, kGateBias);
      if (!pass(HookPoint::kGateOut, gate)) return {};
    }
    Tensor up = w_.linear(x, kUp, kUpBias);
    if (!pass(HookPoint::kUpOut, up)) return {};
    return mlp_key(context_.config, w_, gate, up);
  }

  Tensor experts(const Tensor& x) const {
    for (const HookPoint point : {HookPoint::kGateOut, HookPoint::kUpOut})
      if (const HookSite site{point, context_.layer}; context_.hooks.touches(site))
        throw std::logic_error(site_text(site) + ": a layer with experts has no such place");
    const RoutedTokens routed = route(context_.config, w_, x);
    const HookSite key_site{HookPoint::kMlpKey, context_.layer};
    if (!context_.hooks.touches(key_site)) return with_shared(routed.output(w_), x);
    Tensor key = routed.whole_keys();
    if (!pass(HookPoint::kMlpKey, key)) return {};
    if (!context_.hooks.replaces(key_site)) return with_shared(routed.output(w_), x);
    const Tensor out = w_.linear(key, kDown);
    return with_shared(routed.biases().defined() ? out + routed.biases() : out, x);
  }

  /// Adds the output of the MLP beside the experts; undefined if the pass ended in it.
  Tensor with_shared(const Tensor& out, const Tensor& x) const {
    if (!context_.config.has_shared_mlp(context_.layer)) return out;
    Tensor key = shared_key(context_.config, w_, x);
    if (!pass(HookPoint::kSharedKey, key)) return {};
    return out + shared_output(context_.config, w_, x, key);
  }

  const LayerContext& context_;
  const LayerWeights& w_;
};

}  // namespace

Tensor ResidualStream::sum() const { return added_BTD.defined() ? h_BTD + added_BTD : h_BTD; }

ResidualStream run_decoder_layer(const LayerContext& context, ResidualStream stream) {
  return LayerRun(context).run(std::move(stream));
}

}  // namespace lancet
