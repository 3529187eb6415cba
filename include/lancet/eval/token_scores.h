// What a model says of each token of a text: how likely it was after those before it, and which were likelier.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

struct LikelyToken {
  TokenId id = 0;
  double log_probability = 0;
};

struct TokenScore {
  LikelyToken own = {};
  std::vector<LikelyToken> likeliest = {};  ///< the likeliest first; of equal ones in no order
};

/// Scores of ids[first] and those after it, each with the `top` likeliest tokens at its place; first >= 1. One pass.
/// Log-softmax in f32 (f64 models: f64).
std::vector<TokenScore> score_tokens(const CausalLM& model, std::span<const TokenId> ids, size_t first, int64_t top);

}  // namespace lancet
