// Scores each token of a text: its probability after the tokens before it, and the most likely tokens at its place.
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
  std::vector<LikelyToken> likeliest = {};  ///< in descending order of probability; equal ones in no particular order
};

/// Returns the scores of ids[first] and the ids after it, each with the `top` most likely tokens at its place; first >=
/// 1. One pass. Log-softmax in f32 (f64 models: f64).
std::vector<TokenScore> score_tokens(const CausalLM& model, std::span<const TokenId> ids, size_t first, int64_t top);

}  // namespace lancet
