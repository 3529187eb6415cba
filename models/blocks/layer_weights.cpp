#include "layer_weights.h"

#include <torch/types.h>

#include "lancet/kernels/linear.h"

namespace lancet {

Tensor LayerWeights::product(const Tensor& x, WeightKind weight, const Tensor& bias) const {
  const QuantisedLinear* quantised = quantised_[static_cast<size_t>(weight)];
  return quantised != nullptr ? quantised->linear(x, bias) : linear_of(x, (*this)[weight], bias);
}

Tensor LayerWeights::linear_of_expert(const Tensor& x, WeightKind weight, int64_t expert, int64_t width) const {
  if (const QuantisedLinear* quantised = quantised_[static_cast<size_t>(weight)]; quantised != nullptr)
    return quantised->linear_of_expert(x, expert);
  const int64_t axis = weight == WeightKind::kDown ? 1 : 0;
  return linear_of(x, (*this)[weight].narrow(axis, expert * width, width));
}

}  // namespace lancet
