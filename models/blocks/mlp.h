// The parts of an MLP between its projections.
#pragma once

#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"
#include "layer_weights.h"

namespace lancet {

/// activation(gate) * up; without a gate activation(up). `weights`: of the layer, for an activation that has some.
Tensor mlp_key(const ModelConfig& config, const LayerWeights& weights, const Tensor& gate, const Tensor& up);

/// Computes the same of gates and ups that one product gave, [..., 2 F].
Tensor mlp_key_of_both(const ModelConfig& config, const LayerWeights& weights, const Tensor& both);

}  // namespace lancet
