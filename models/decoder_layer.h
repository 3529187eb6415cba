// One decoder layer: its blocks in the order that the configuration says. A pure function of tensors on one device.
#pragma once

#include "blocks/attention.h"
#include "lancet/models/hooks.h"

namespace lancet {

struct LayerContext {
  const ModelConfig& config;
  const LayerWeights& weights;
  const AttentionInputs& inputs;
  const SequenceInfo& sequence;
  const HookSet& hooks;
  int64_t layer;
};

/// h [B, T, D] -> [B, Q, D]; undefined when the hooks stop the pass inside this layer.
Tensor run_decoder_layer(const LayerContext& context, Tensor h_BTD);

}  // namespace lancet
