#include "layer_weights.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "lancet/kernels/linear.h"

namespace lancet {

Tensor LayerWeights::product(const Tensor& x, WeightKind weight, const Tensor& bias) const {
  const QuantisedLinear* quantised = quantised_[static_cast<size_t>(weight)];
  return quantised != nullptr ? quantised->linear(x, bias) : linear_of(x, (*this)[weight], bias);
}

Tensor LayerWeights::joined(NeighbourKinds kinds) const {
  std::vector<const Tensor*> parts;
  for (const WeightKind kind : kinds) parts.push_back(&(*this)[kind]);
  return joined_neighbours(parts);
}

Tensor LayerWeights::linear_of_neighbours(const Tensor& x, NeighbourKinds weights, NeighbourKinds biases) const {
  const Tensor matrix = joined(weights);
  if (!matrix.defined()) return {};
  const Tensor bias = joined(biases);
  const bool has_bias = std::ranges::any_of(biases, [&](WeightKind kind) { return (*this)[kind].defined(); });
  return has_bias && !bias.defined() ? Tensor() : linear_of(x, matrix, bias);
}

Tensor LayerWeights::linear_of_expert(const Tensor& x, WeightKind weight, int64_t expert, int64_t width,
                                      const Tensor& bias) const {
  if (const QuantisedLinear* quantised = quantised_[static_cast<size_t>(weight)]; quantised != nullptr)
    return quantised->linear_of_expert(x, expert, bias);
  const int64_t axis = weight == WeightKind::kDown ? 1 : 0;
  return linear_of(x, (*this)[weight].narrow(axis, expert * width, width), bias);
}

}  // namespace lancet
