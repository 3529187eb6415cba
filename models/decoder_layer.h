// One decoder layer: its blocks in the order that the configuration says. A pure function of tensors on one device.
#pragma once

#include "blocks/attention.h"

namespace lancet {

/// The residual stream [B, T, D] between layers. What the last layer writes is still to be added where `added` is
/// defined: the next norm does it on its way.
struct ResidualStream {
  Tensor h_BTD;
  Tensor added_BTD;

  Tensor sum() const;
};

/// [B, T, D] -> [B, Q, D]; undefined when the hooks stop the pass inside this layer.
ResidualStream run_decoder_layer(const LayerContext& context, ResidualStream stream);

}  // namespace lancet
