// Multi-head latent attention (arXiv 2405.04434): keys and values of all heads are made of one short vector for each
// token, perhaps queries of another.
#pragma once

#include <cstdint>

namespace lancet {

/// A head's query and key are numbers that are not turned, and behind them those that the rotary embedding turns. The
/// turned ones of the key are all heads' together.
struct LatentConfig {
  int64_t rank = 0;        ///< numbers of the vector for keys and values; 0: attention is the usual one
  int64_t query_rank = 0;  ///< numbers of the vector for queries; 0: they are made of the hidden state
  int64_t plain_dim = 0;   ///< numbers of a head's query that are not turned
  int64_t turned_dim = 0;
  int64_t value_dim = 0;  ///< numbers of a head's value, at most those of its key
  double norm_eps = 1e-6;
};

}  // namespace lancet
