// Queries, keys and values of latent attention (LatentConfig). With them, attention is computed in the usual way.
#pragma once

#include "attention.h"

namespace lancet {

/// All have head_dim numbers: values have zeros at the end.
struct LatentHeads {
  Tensor query_BQHC;
  Tensor key_BTHC;
  Tensor value_BTHC;
};

/// Computes them from x [B, T, D], rotated; undefined if the hooks stop the pass at a vector.
LatentHeads latent_heads(const LayerContext& context, const Tensor& x_BTD);

}  // namespace lancet
