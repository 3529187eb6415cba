// Attention of ragged rows: rows of any lengths that are stored one after the other, without padding. A token attends
// to the earlier tokens of its row and to its row's own tokens up to itself. The keys and values of earlier tokens are
// constants in a pool that rows share.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/kernels/attention.h"

namespace lancet {

/// Describes, on the host, which tokens attend to which.
struct RaggedLayout {
  std::vector<int64_t> tokens;                ///< number of own tokens of each row, at least one per row
  std::vector<std::vector<int64_t>> earlier;  ///< places in the pool of each row's earlier tokens, first to last
  /// Indices of the own tokens that attend, counted over all rows: ascending, no repeats.
  std::vector<int64_t> queries;
  int64_t window = 0;  ///< a token sees the last `window` tokens, itself included; 0: all

  int64_t n_tokens() const;
};

/// The rows padded to equal lengths, for devices and types without lancet's own kernels. F, P, Q: number of own tokens,
/// earlier tokens and queries of the longest row.
struct PaddedRows {
  int64_t queries = 0, tokens = 0, earlier = 0;
  Tensor token_slot_N;   ///< place of each own token among the R * F padded places
  Tensor query_slot_M;   ///< place of each query among the R * Q padded places
  Tensor pool_place_RP;  ///< flattened; 0 where a row has fewer earlier tokens
  Tensor mask_R1QS;      ///< bool [R, 1, Q, P + F]: true: may attend
};

/// A layout on a device. All tensors are int64. Bounds [R + 1] say that row r has elements bounds[r]..bounds[r + 1]
/// - 1.
struct RaggedRows {
  int64_t window = 0;
  Tensor token_bounds;
  Tensor token_row_N;  ///< row of each own token
  Tensor earlier_bounds;
  Tensor earlier_E;  ///< places in the pool
  Tensor query_bounds;
  Tensor query_row_M;    ///< row of each query
  Tensor query_place_M;  ///< place of each query among its row's own tokens
  PaddedRows padded;     ///< undefined if has_ragged_kernels()
};

/// Whether ragged_attention() is one of lancet's own kernels or loops on this device and type.
bool has_ragged_kernels(at::Device device, at::ScalarType type);

/// Returns the layout for attention of tensors of `type` on `device`.
RaggedRows ragged_rows(const RaggedLayout& layout, at::Device device, at::ScalarType type);

/// Computes attention of the layout's queries [M, H, C] -> [M, H * C]. `fresh`: keys and values [N, K, C] of all own
/// tokens; K divides H. `pool`: keys and values of earlier tokens [K, S, C]; they are constants, may be a view of a
/// larger memory, and are undefined if no row has earlier tokens. Differentiable once.
Tensor ragged_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const RaggedRows& rows, AttentionRule rule);

}  // namespace lancet
