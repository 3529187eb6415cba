// Queries, keys and values of latent attention (LatentConfig), of which attention is made as of all others.
#pragma once

#include "attention.h"

namespace lancet {

/// All of head_dim numbers: values have zeros behind their own.
struct LatentHeads {
  Tensor query_BQHC;
  Tensor key_BTHC;
  Tensor value_BTHC;
};

/// Makes them of x [B, T, D], turned; undefined when the hooks stop the pass at a vector.
LatentHeads latent_heads(const LayerContext& context, const Tensor& x_BTD);

}  // namespace lancet
