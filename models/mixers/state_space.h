// The state space of Mamba-2 (arXiv 2405.21060): each head has a state that decays, and to which each token adds its
// key times its value. Computed token by token, or chunk by chunk with matrix products.
#pragma once

#include "chunks.h"

namespace lancet {

/// R rows, G groups of heads with their own keys and queries, H heads, T tokens; all of one floating type.
struct StateSpaceTokens {
  Tensor query_RGTK;
  Tensor key_RGTK;
  Tensor value_RHTV;
  Tensor decay_RHT;  ///< logarithm of the factor of the state before the token, at most 0
};

/// Computes in chunks of `chunk` tokens (the last one may be shorter); a single token is computed directly.
/// `state_RHKV`: before the first token; undefined: zeros. Differentiable.
RuleResult state_space(const StateSpaceTokens& tokens, const Tensor& state_RHKV, StateAfter after,
                       int64_t chunk = kMixerChunk);

/// Computes the same token by token.
RuleResult state_space_by_tokens(const StateSpaceTokens& tokens, const Tensor& state_RHKV);

}  // namespace lancet
