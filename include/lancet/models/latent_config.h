// Multi-head latent attention (arXiv 2405.04434): the keys and values of all heads are computed from one short vector
// per token; queries may be computed from a second one.
#pragma once

#include <cstdint>

namespace lancet {

/// The sizes of latent attention. A head's query and key have a part without rotary embedding, followed by a part that
/// the rotary embedding turns. All heads share the turned part of the key.
struct LatentConfig {
  int64_t rank = 0;        ///< size of the vector for keys and values; 0: attention is the usual one
  int64_t query_rank = 0;  ///< size of the vector for queries; 0: queries are computed from the hidden state
  int64_t plain_dim = 0;   ///< size of the part of a head's query that is not turned
  int64_t turned_dim = 0;
  int64_t value_dim = 0;  ///< size of a head's value, at most the size of its key
  double norm_eps = 1e-6;
  bool is_split = false;  ///< the files have keys and values of heads in tensors of their own (Layout::kLatentParts)
};

}  // namespace lancet
