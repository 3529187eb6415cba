// Attention of query heads that share key/value heads (grouped-query attention, arXiv 2305.13245).
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// query [B, H, T, C], key and value [B, K, S, C] with K dividing H -> [B, H, T, C]. `mask_B1TS`: bool, true: may
/// attend; every query may attend to something. Undefined: causal, S = T.
Tensor grouped_attention(const Tensor& query_BHTC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                         const Tensor& mask_B1TS);

}  // namespace lancet
