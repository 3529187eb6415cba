// The state space of Mamba-2 (arXiv 2405.21060): a state for each head that fades, and to which each token adds its key
// times its value. Token by token, or chunk by chunk by products of matrices.
#pragma once

#include "chunks.h"

namespace lancet {

/// R rows, G groups of heads with keys and queries of their own, H heads, T tokens; all of one floating type.
struct StateSpaceTokens {
  Tensor query_RGTK;
  Tensor key_RGTK;
  Tensor value_RHTV;
  Tensor decay_RHT;  ///< logarithm of what the state is multiplied by before, at most 0
};

/// Goes by chunks of `chunk` tokens, a lone token by itself. `state_RHKV`: before the first token; undefined: zeros.
/// Differentiable.
RuleResult state_space(const StateSpaceTokens& tokens, const Tensor& state_RHKV, StateAfter after,
                       int64_t chunk = kMixerChunk);

/// Computes the same token by token.
RuleResult state_space_by_tokens(const StateSpaceTokens& tokens, const Tensor& state_RHKV);

}  // namespace lancet
