// What a layer does to each token separately between its products: norms, and parts of an MLP.
#pragma once

#include <utility>

#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"
#include "layer_weights.h"

namespace lancet {

// Norms of hidden states and of heads, as the configuration says.

/// Returns x [..., D] normed over its last dimension. `bias` [D]: only LayerNorm has it, and may lack both bias and
/// weight.
Tensor normed(const ModelConfig& config, const Tensor& x, const Tensor& weight, const Tensor& bias);

/// Returns h + added, and the input of a block: the norm of this sum, or without a norm the sum itself.
std::pair<Tensor, Tensor> sum_and_normed(const ModelConfig& config, const Tensor& h, const Tensor& added,
                                         const Tensor& weight, const Tensor& bias);

/// Whether there is a norm before a block with this weight.
inline bool has_norm(const ModelConfig& config, const Tensor& weight) { return weight.defined() || config.bare_norms; }

/// Returns queries or keys [B, T, heads, C] with a norm over each head, or over all heads.
Tensor normed_heads(const ModelConfig& config, const Tensor& x_BTHC, const Tensor& weight, const Tensor& bias);

// The parts of an MLP between its projections.

/// Returns activation(gate) * up; without a gate activation(up). `weights`: of the layer, for activations with
/// parameters.
Tensor mlp_key(const ModelConfig& config, const LayerWeights& weights, const Tensor& gate, const Tensor& up);

/// Computes the same from gates and ups that one product gave, [..., 2 F].
Tensor mlp_key_of_both(const ModelConfig& config, const LayerWeights& weights, const Tensor& both);

}  // namespace lancet
