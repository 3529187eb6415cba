// The state space of Mamba-1 (arXiv 2312.00752): each channel has a state, whose numbers fade each at a rate of its
// own, and to which each token adds its key times the channel's value. Token by token, or chunk by chunk, within which
// what tokens add is summed over spans of twice the length at each step.
#pragma once

#include "chunks.h"

namespace lancet {

/// R rows, H channels, T tokens; all of one floating type.
struct SelectiveTokens {
  Tensor query_RTK;  ///< all channels' queries and keys
  Tensor key_RTK;
  Tensor value_RHT;
  Tensor step_RHT;  ///< how far each channel goes on before the token; not below 0
  Tensor rate_HK;   ///< times the step, logarithms of what a state's numbers are multiplied by; not above 0
};

/// Tokens of a chunk: every number of the state is there for each of them.
inline constexpr int64_t kSelectiveChunk = 16;

/// Goes by chunks of `chunk` tokens, a lone token by itself. `state_RHK1`: before the first token; undefined: zeros.
/// Values already have their steps as factors. Differentiable.
RuleResult selective_space(const SelectiveTokens& tokens, const Tensor& state_RHK1, StateAfter after,
                           int64_t chunk = kSelectiveChunk);

/// Computes the same token by token.
RuleResult selective_space_by_tokens(const SelectiveTokens& tokens, const Tensor& state_RHK1);

}  // namespace lancet
