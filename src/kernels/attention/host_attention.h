// Attention by loops on the host: grouped_attention for few queries, and ragged_attention. Defined in attention.cpp.
#pragma once

#include "lancet/kernels/attention.h"

namespace lancet {

/// Keys and values of earlier tokens, without gradients: [R, K, S, C], or [1, K, S, C] shared by all rows, or
/// undefined.
struct EarlierKeys {
  KeyValuePair pool;
  bool is_shared = false;  ///< all rows use the same ones
};

/// The rows, and which tokens each query attends to; see AttentionRows.
struct HostRows {
  Tensor query_bounds, token_bounds, earlier_bounds;
  Tensor earlier_places;  ///< undefined: a row's earlier tokens are the first ones
  Tensor query_places;    ///< undefined with a mask
  Tensor mask;
  int64_t window = 0;
};

/// query [M, H, C], fresh keys and values [N, K, C] -> [M, H, C], of a type that has host loops. Differentiable once.
Tensor host_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const EarlierKeys& earlier,
                      const HostRows& rows, AttentionRule rule);

}  // namespace lancet
