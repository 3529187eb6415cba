// The gated delta rule (arXiv 2412.06464): a state for each head that forgets, and that each token's key corrects
// towards its value. Token by token, or chunk by chunk by products of matrices.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// R rows, H heads, T tokens, K numbers of a key, V of a value; all of one floating type.
struct DeltaTokens {
  Tensor query_RHTK;
  Tensor key_RHTK;
  Tensor value_RHTV;
  Tensor rate_RHT;   ///< which share of the difference between value and state is learned
  Tensor decay_RHT;  ///< logarithm of what the state is multiplied by before, at most 0
};

struct DeltaResult {
  Tensor out_RHTV;
  Tensor state_RHKV;  ///< state behind the last token; perhaps undefined where nobody asked for it
};

/// Whether the state behind the last token is wanted: it takes the memory of as many tokens as a head has numbers.
enum class StateAfter : uint8_t { kNone, kGiven };

/// Tokens of a chunk.
inline constexpr int64_t kDeltaChunk = 64;

/// Goes by chunks of `chunk` tokens, the last one perhaps shorter; a lone token by itself. `state_RHKV`: before the
/// first token; undefined: zeros. Differentiable.
DeltaResult delta_rule(const DeltaTokens& tokens, const Tensor& state_RHKV, StateAfter after,
                       int64_t chunk = kDeltaChunk);

/// Computes the same token by token.
DeltaResult delta_rule_by_tokens(const DeltaTokens& tokens, const Tensor& state_RHKV);

}  // namespace lancet
