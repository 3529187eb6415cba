// The gated delta rule (arXiv 2412.06464): a state for each head that forgets, and that each token's key corrects
// towards its value. Token by token, or chunk by chunk by products of matrices.
#pragma once

#include "chunks.h"

namespace lancet {

/// R rows, H heads, T tokens, K numbers of a key, V of a value; all of one floating type.
struct DeltaTokens {
  Tensor query_RHTK;
  Tensor key_RHTK;
  Tensor value_RHTV;
  Tensor rate_RHT;   ///< which share of the difference between value and state is learned
  Tensor decay_RHT;  ///< logarithm of what the state is multiplied by before, at most 0
};

/// Goes by chunks of `chunk` tokens, the last one perhaps shorter; a lone token by itself. `state_RHKV`: before the
/// first token; undefined: zeros. Differentiable.
RuleResult delta_rule(const DeltaTokens& tokens, const Tensor& state_RHKV, StateAfter after,
                      int64_t chunk = kMixerChunk);

/// Computes the same token by token.
RuleResult delta_rule_by_tokens(const DeltaTokens& tokens, const Tensor& state_RHKV);

}  // namespace lancet
