#include "covariance_weights.h"

namespace lancet {

CovarianceWeights parse_covariance_weights(ConfigSection& editor, CovarianceWeights defaults) {
  return {.covariance = editor.number("covariance_weight", {.min = 1e-300}, defaults.covariance),
          .identity = editor.number("identity_weight", {.min = 0}, defaults.identity)};
}

Tensor weighted_factor(const EditContext& context, int64_t layer, const CovarianceWeights& weights) {
  Tensor lower_FF = context.covariance_factor(layer);
  return weights.identity > 0 ? lift_factor(lower_FF, weights.covariance, weights.identity) : lower_FF;
}

}  // namespace lancet
