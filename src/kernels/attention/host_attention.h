// Attention as loops on the host: what grouped_attention of few queries and ragged_attention are there.
// Defined in attention.cpp.
#pragma once

#include "lancet/kernels/attention.h"

namespace lancet {

/// Keys and values of earlier tokens, constants: [R, K, S, C], of all rows [1, K, S, C], or undefined.
struct EarlierKeys {
  KeyValuePair pool;
  bool is_shared = false;  ///< all rows have the same
};

/// Which rows there are, and who sees what; see AttentionRows.
struct HostRows {
  Tensor query_bounds, token_bounds, earlier_bounds;
  Tensor earlier_places;  ///< undefined: a row has the places from 0 on
  Tensor query_places;    ///< undefined with a mask
  Tensor mask;
  int64_t window = 0;
};

/// query [M, H, C], fresh keys and values [N, K, C] -> [M, H, C], of a type that has host loops. Differentiable once.
Tensor host_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const EarlierKeys& earlier,
                      const HostRows& rows, AttentionRule rule);

}  // namespace lancet
