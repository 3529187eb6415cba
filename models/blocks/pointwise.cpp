#include "pointwise.h"

#include <torch/types.h>

#include "lancet/kernels/decoder_ops.h"
#include "scaled.h"

namespace lancet {

Tensor normed(const ModelConfig& config, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  switch (config.norm) {
    case NormKind::kRms:
      return rms_norm(x, weight.defined() ? weight : torch::ones({x.size(-1)}, x.options()), config.norm_eps);
    case NormKind::kRmsPrecise:
      return rms_norm_precise(x, weight, config.norm_eps);
    case NormKind::kRmsPlusOne:  // 1 + w is exact enough only in a wider type than that of the weights
      return rms_norm_precise(x, weight.to(precise_type(weight)) + 1, config.norm_eps);
    case NormKind::kLayer:
      return at::layer_norm(x, {x.size(-1)}, weight, bias, config.norm_eps);
    case NormKind::kLayerPlusOne:  // in the weights' type, as in transformers
      return at::layer_norm(x, {x.size(-1)}, weight + 1, bias, config.norm_eps);
  }
  return x;
}

std::pair<Tensor, Tensor> sum_and_normed(const ModelConfig& config, const Tensor& h, const Tensor& added,
                                         const Tensor& weight, const Tensor& bias) {
  if (weight.defined() && config.norm == NormKind::kRms) {
    NormedSum both = add_rms_norm(h, added, weight, config.norm_eps);
    return {std::move(both.sum), std::move(both.normed)};
  }
  const Tensor sum = h + added;
  return {sum, has_norm(config, weight) ? normed(config, sum, weight, bias) : sum};
}

Tensor normed_heads(const ModelConfig& config, const Tensor& x_BTHC, const Tensor& weight, const Tensor& bias) {
  switch (config.head_norm) {
    case HeadNorm::kNone:
      return x_BTHC;
    case HeadNorm::kPerHead:
      return normed(config, x_BTHC, weight, bias);
    case HeadNorm::kEachHead:
      return normed(config, x_BTHC, {}, {}) * weight.view({-1, x_BTHC.size(3)});
    case HeadNorm::kWhole:
      return normed(config, x_BTHC.flatten(2), weight, bias).view_as(x_BTHC);
  }
  return x_BTHC;
}

namespace {

Tensor xielu(const LayerWeights& weights, const Tensor& x) {
  const Tensor& slope = weights[WeightKind::kXieluSlope];
  const Tensor above = at::softplus(weights[WeightKind::kXieluAbove]);
  const Tensor below = slope + at::softplus(weights[WeightKind::kXieluBelow]);
  const Tensor bent = at::expm1(at::minimum(x, weights[WeightKind::kXieluCut])) - x;
  return at::where(x > 0, above * x * x, bent * below) + slope * x;
}

Tensor activated(Activation activation, const LayerWeights& weights, const Tensor& x) {
  switch (activation) {
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kGelu:
      return at::gelu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kReluSquared:
      return at::relu(x).square();
    case Activation::kXielu:
      return xielu(weights, x);
    case Activation::kLimitedSwish:
      break;  // gates and ups together
  }
  return x;
}

Tensor limited_swish(const ModelConfig& config, const Tensor& gate, const Tensor& up) {
  const Tensor cut = gate.clamp_max(config.mlp_limit);
  return (up.clamp(-config.mlp_limit, config.mlp_limit) + 1) * (cut * (cut * config.mlp_slope).sigmoid());
}

}  // namespace

Tensor mlp_key(const ModelConfig& config, const LayerWeights& weights, const Tensor& plain_gate, const Tensor& up) {
  if (!config.gated_mlp) return activated(config.activation, weights, up);
  const Tensor gate = scaled(plain_gate, config.gate_scale);
  if (config.activation == Activation::kSilu) return silu_times(gate, up);
  if (config.activation == Activation::kLimitedSwish) return limited_swish(config, gate, up);
  return activated(config.activation, weights, gate) * up;
}

Tensor mlp_key_of_both(const ModelConfig& config, const LayerWeights& weights, const Tensor& both) {
  if (config.activation == Activation::kSilu && config.gate_scale == 1) return silu_times_halves(both);
  const std::vector<Tensor> halves = both.chunk(2, -1);
  return mlp_key(config, weights, halves[0], halves[1]);
}

}  // namespace lancet
