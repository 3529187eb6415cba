// The recurrent mixer of a decoder layer up to its output projection: projections, a short causal convolution, what its
// kind makes of that (mixer_form.h), a gate.
#pragma once

#include "blocks/attention.h"

namespace lancet {

/// x [B, T, D] -> [B, Q, H * V], all heads' results: what the output projection reads.
Tensor recurrent_mixer(const LayerContext& context, const Tensor& x_BTD);

}  // namespace lancet
