// The gated delta rule (arXiv 2412.06464): each head has a state that decays, and that each token corrects: for its
// key, the state should give its value. Computed token by token, or chunk by chunk with matrix products.
#pragma once

#include "chunks.h"

namespace lancet {

/// R rows, H heads, T tokens, K numbers of a key, V of a value; all of one floating type.
struct DeltaTokens {
  Tensor query_RHTK;
  Tensor key_RHTK;
  Tensor value_RHTV;
  Tensor rate_RHT;   ///< the share of the difference between value and state that is learned
  Tensor decay_RHT;  ///< logarithm of the factor of the state before the token, at most 0
};

/// Computes in chunks of `chunk` tokens (the last one may be shorter); a single token is computed directly.
/// `state_RHKV`: before the first token; undefined: zeros. Differentiable.
RuleResult delta_rule(const DeltaTokens& tokens, const Tensor& state_RHKV, StateAfter after,
                      int64_t chunk = kMixerChunk);

/// Computes the same token by token.
RuleResult delta_rule_by_tokens(const DeltaTokens& tokens, const Tensor& state_RHKV);

}  // namespace lancet
