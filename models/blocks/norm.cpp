#include "norm.h"

#include <torch/types.h>

#include "lancet/kernels/decoder_ops.h"

namespace lancet {

Tensor normed(const ModelConfig& config, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  switch (config.norm) {
    case NormKind::kRms:
      return rms_norm(x, weight.defined() ? weight : torch::ones({x.size(-1)}, x.options()), config.norm_eps);
    case NormKind::kRmsPrecise:
      return rms_norm_precise(x, weight, config.norm_eps);
    case NormKind::kRmsPlusOne:  // 1 + w is exact enough only in a wider type than the weights'
      return rms_norm_precise(x, weight.to(precise_type(weight)) + 1, config.norm_eps);
    case NormKind::kLayer:
      return at::layer_norm(x, {x.size(-1)}, weight, bias, config.norm_eps);
    case NormKind::kLayerPlusOne:  // in the weights' type, as transformers adds
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

}  // namespace lancet
