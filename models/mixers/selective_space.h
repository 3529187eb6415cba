// The state space of Mamba-1 (arXiv 2312.00752): each channel has a state, whose numbers decay at different rates, and
// to which each token adds its key times the channel's value. Computed token by token, or chunk by chunk; within a
// chunk, what tokens add is summed over spans that double at each step.
#pragma once

#include "chunks.h"

namespace lancet {

/// R rows, H channels, T tokens; all of one floating type.
struct SelectiveTokens {
  Tensor query_RTK;  ///< queries and keys of all channels
  Tensor key_RTK;
  Tensor value_RHT;
  Tensor step_RHT;  ///< the size of each channel's step before the token; at least 0
  Tensor rate_HK;   ///< multiplied by the step: logarithms of the factors of a state's numbers; at most 0
};

/// The number of tokens in a chunk. Every number of the state is stored for each of them.
inline constexpr int64_t kSelectiveChunk = 16;

/// Computes in chunks of `chunk` tokens; a single token is computed directly. `state_RHK1`: before the first token;
/// undefined: zeros. Values must already be multiplied by their steps. Differentiable.
RuleResult selective_space(const SelectiveTokens& tokens, const Tensor& state_RHK1, StateAfter after,
                           int64_t chunk = kSelectiveChunk);

/// Computes the same token by token.
RuleResult selective_space_by_tokens(const SelectiveTokens& tokens, const Tensor& state_RHK1);

}  // namespace lancet
