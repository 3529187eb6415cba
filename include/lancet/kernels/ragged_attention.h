// Attention of ragged rows: rows of any lengths that lie one after the other, without padding. A token attends to the
// earlier tokens of its row, whose keys and values are constants in a pool that rows share, and to its row's own tokens
// up to itself.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/kernels/attention.h"

namespace lancet {

/// Which tokens attend to which, as the host counts them.
struct RaggedLayout {
  std::vector<int64_t> tokens;                ///< each row's own tokens, row after row; a row has at least one
  std::vector<std::vector<int64_t>> earlier;  ///< each row's earlier tokens, first to last: their places in the pool
  std::vector<int64_t> queries;               ///< own tokens, counted over all rows, that attend: ascending, no repeats
  int64_t window = 0;                         ///< tokens of which one sees the last ones, its own included; 0: all

  int64_t n_tokens() const;
};

/// The rows padded to equal lengths, for devices and types without kernels of our own. F, P, Q: own tokens, earlier
/// tokens and queries of the longest row.
struct PaddedRows {
  int64_t queries = 0, tokens = 0, earlier = 0;
  Tensor token_slot_N;   ///< place of each own token among the R * F
  Tensor query_slot_M;   ///< place of each query among the R * Q
  Tensor pool_place_RP;  ///< flat; 0 where a row has fewer
  Tensor mask_R1QS;      ///< bool [R, 1, Q, P + F]: true: may attend
};

/// A layout on a device. All int64: bounds [R + 1] say that row r has elements bounds[r]..bounds[r + 1] - 1.
struct RaggedRows {
  int64_t window = 0;
  Tensor token_bounds;
  Tensor token_row_N;  ///< row of each own token
  Tensor earlier_bounds;
  Tensor earlier_E;  ///< places in the pool
  Tensor query_bounds;
  Tensor query_row_M;    ///< row of each query
  Tensor query_place_M;  ///< its place among its row's own tokens
  PaddedRows padded;     ///< undefined where has_ragged_kernels()
};

/// Whether ragged_attention() is one kernel or loop of our own there.
bool has_ragged_kernels(at::Device device, at::ScalarType type);

/// Returns the layout for attention of tensors of `type` on `device`.
RaggedRows ragged_rows(const RaggedLayout& layout, at::Device device, at::ScalarType type);

/// query [M, H, C] of the layout's queries, fresh keys and values [N, K, C] of all own tokens, K dividing H; `pool`:
/// keys and values of earlier tokens [K, S, C], constants, perhaps a part of a longer memory; undefined where no row
/// has earlier tokens -> [M, H * C]. Differentiable once.
Tensor ragged_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const RaggedRows& rows, AttentionRule rule);

}  // namespace lancet
