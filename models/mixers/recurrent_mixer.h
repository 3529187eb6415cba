// The recurrent mixer of a decoder layer up to its output projection: projections, a short causal convolution, the part
// of its kind (mixer_form.h), a gate.
#pragma once

#include "blocks/attention.h"

namespace lancet {

/// Computes x [B, T, D] -> [B, Q, H * V], the results of all heads, which the output projection reads.
Tensor recurrent_mixer(const LayerContext& context, const Tensor& x_BTD);

}  // namespace lancet
