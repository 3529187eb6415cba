// What a layer does to each token by itself between its products: norms, and the parts of an MLP.
#pragma once

#include <utility>

#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"
#include "layer_weights.h"

namespace lancet {

// Norms of hidden states and of heads, as the configuration says.

/// x [..., D] normed over its last dimension; `bias` [D] of LayerNorm alone, which may lack it, and the weight too.
Tensor normed(const ModelConfig& config, const Tensor& x, const Tensor& weight, const Tensor& bias);

/// h + added, and what a block reads of it: its norm, or without a norm the sum itself.
std::pair<Tensor, Tensor> sum_and_normed(const ModelConfig& config, const Tensor& h, const Tensor& added,
                                         const Tensor& weight, const Tensor& bias);

/// Whether something is normed before a block that has this weight, or none.
inline bool has_norm(const ModelConfig& config, const Tensor& weight) { return weight.defined() || config.bare_norms; }

/// Queries or keys [B, T, heads, C] with a norm over each head or over all of them.
Tensor normed_heads(const ModelConfig& config, const Tensor& x_BTHC, const Tensor& weight, const Tensor& bias);

// The parts of an MLP between its projections.

/// activation(gate) * up; without a gate activation(up). `weights`: of the layer, for an activation that has some.
Tensor mlp_key(const ModelConfig& config, const LayerWeights& weights, const Tensor& gate, const Tensor& up);

/// Computes the same of gates and ups that one product gave, [..., 2 F].
Tensor mlp_key_of_both(const ModelConfig& config, const LayerWeights& weights, const Tensor& both);

}  // namespace lancet
