// Norms of hidden states and of heads, as the configuration says.
#pragma once

#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// x [..., D] normed over its last dimension; `bias` [D] of LayerNorm alone.
Tensor normed(const ModelConfig& config, const Tensor& x, const Tensor& weight, const Tensor& bias);

/// Queries or keys [B, T, heads, C] with a norm over each head or over all of them.
Tensor normed_heads(const ModelConfig& config, const Tensor& x_BTHC, const Tensor& weight);

}  // namespace lancet
