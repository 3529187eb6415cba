// The recurrent mixer of a decoder layer up to its output projection: projections, a short causal convolution, the
// gated delta rule, a gated norm (Qwen3-Next's).
#pragma once

#include "attention.h"

namespace lancet {

/// x [B, T, D] -> [B, Q, H * V], all heads' results: what the output projection reads.
Tensor delta_mixer(const ModelConfig& config, const LayerWeights& weights, const AttentionInputs& inputs,
                   const SequenceInfo& sequence, int64_t layer, const Tensor& x_BTD);

}  // namespace lancet
