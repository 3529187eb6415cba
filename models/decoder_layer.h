// One decoder layer: its blocks, in the order that the configuration gives. A pure function of tensors on one device.
#pragma once

#include "blocks/attention.h"

namespace lancet {

/// The residual stream [B, T, D] between layers. If `added` is defined, the last layer's output still has to be added:
/// the next norm does this.
struct ResidualStream {
  Tensor h_BTD;
  Tensor added_BTD;

  Tensor sum() const;
};

/// Computes [B, T, D] -> [B, Q, D]; undefined if the hooks stop the pass inside this layer.
ResidualStream run_decoder_layer(const LayerContext& context, ResidualStream stream);

}  // namespace lancet
