#include "decoder_layer.h"

#include <torch/types.h>

#include <stdexcept>
#include <tuple>

#include "blocks/delta_mixer.h"
#include "blocks/experts.h"
#include "blocks/mlp.h"
#include "blocks/norm.h"

namespace lancet {
namespace {

using enum WeightKind;

/// A run through the layer, which hooks may end.
class LayerRun {
 public:
  explicit LayerRun(const LayerContext& context) : context_(context), w_(context.weights) {}

  Tensor run(Tensor h) {
    if (!pass(HookPoint::kBlockIn, h)) return {};
    Tensor x = before(h, kAttnNorm, kAttnNormBias);
    if (!pass(HookPoint::kAttnIn, x)) return {};
    const auto mix = context_.config.has_recurrence(context_.layer) ? delta_mixer : attention;
    Tensor attended = mix(context_.config, w_, context_.inputs, context_.sequence, context_.layer, x);
    if (!pass(HookPoint::kAttnKey, attended)) return {};
    attended = w_.linear(attended, kAttnOut, kAttnOutBias);
    if (!pass(HookPoint::kAttnOut, attended)) return {};
    attended = after(attended, kAttnPostNorm);
    h = take_places(h, context_.inputs.outputs);  // from here on of the tokens whose outputs are wanted
    if (context_.config.order == BlockOrder::kSequential) {
      std::tie(h, x) = sum_and_normed(context_.config, h, attended, w_[kMlpNorm], w_[kMlpNormBias]);
    } else {
      x = w_[kMlpNorm].defined() ? before(h, kMlpNorm, kMlpNormBias) : take_places(x, context_.inputs.outputs);
      h = h + attended;
    }
    const Tensor out = mlp(std::move(x));
    if (!out.defined()) return {};
    h = h + out;
    if (!pass(HookPoint::kBlockOut, h)) return {};
    return h;
  }

 private:
  /// Passes a value through the hooks of a site; false when the pass ends there.
  bool pass(HookPoint point, Tensor& value) const {
    const HookSite site{point, context_.layer};
    value = context_.hooks.apply(site, std::move(value));
    return !context_.hooks.stops_at(site);
  }

  /// What a block reads of the residual stream.
  Tensor before(const Tensor& h, WeightKind norm, WeightKind bias) const {
    return has_norm(context_.config, w_[norm]) ? normed(context_.config, h, w_[norm], w_[bias]) : h;
  }

  /// What a block writes to it.
  Tensor after(const Tensor& out, WeightKind norm) const {
    const Tensor written = w_[norm].defined() ? normed(context_.config, out, w_[norm], {}) : out;
    return context_.config.residual_scale == 1 ? written : written * context_.config.residual_scale;
  }

  Tensor mlp(Tensor x) const {
    if (!pass(HookPoint::kMlpIn, x)) return {};
    Tensor out = w_[kRouter].defined() ? experts(x) : dense(x);
    if (!out.defined() || !pass(HookPoint::kMlpOut, out)) return {};
    return after(out, kMlpPostNorm);
  }

  Tensor dense(const Tensor& x) const {
    Tensor gate;
    if (context_.config.gated_mlp) {
      gate = w_.linear(x, kGate, kGateBias);
      if (!pass(HookPoint::kGateOut, gate)) return {};
    }
    Tensor up = w_.linear(x, kUp, kUpBias);
    if (!pass(HookPoint::kUpOut, up)) return {};
    Tensor key = mlp_key(context_.config, w_, gate, up);
    if (!pass(HookPoint::kMlpKey, key)) return {};
    return w_.linear(key, kDown, kDownBias);
  }

  Tensor experts(const Tensor& x) const {
    for (const HookPoint point : {HookPoint::kGateOut, HookPoint::kUpOut})
      if (const HookSite site{point, context_.layer}; context_.hooks.touches(site))
        throw std::logic_error(site_text(site) + ": a layer with experts has no such place");
    const RoutedTokens routed = route(context_.config, w_, x);
    const HookSite key_site{HookPoint::kMlpKey, context_.layer};
    const auto with_shared = [&](const Tensor& out) {
      return context_.config.experts.shared > 0 ? out + shared_output(context_.config, w_, x) : out;
    };
    if (!context_.hooks.touches(key_site)) return with_shared(routed.output(w_));
    Tensor key = routed.whole_keys();
    if (!pass(HookPoint::kMlpKey, key)) return {};
    return with_shared(context_.hooks.replaces(key_site) ? w_.linear(key, kDown) : routed.output(w_));
  }

  const LayerContext& context_;
  const LayerWeights& w_;
};

}  // namespace

Tensor run_decoder_layer(const LayerContext& context, Tensor h_BTD) { return LayerRun(context).run(std::move(h_BTD)); }

}  // namespace lancet
