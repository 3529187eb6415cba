// Text generation with a KV cache, many rows at once. Works on token ids; tokenizers stay outside.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/models/batching.h"
#include "lancet/models/causal_lm.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

struct GenerateOptions {
  std::vector<TokenId> eos_ids;           ///< a row ends behind one of these; the id itself is not part of the result
  int64_t top_k = 1;                      ///< 1: greedy; else sampled from the k likeliest, renormalised; 0: from all
  uint64_t seed = 0;                      ///< a row's random numbers depend on the seed and the row's index only
  int64_t first_row = 0;                  ///< index of the first row, where the rows are a part of more
  int64_t batch_tokens = kForwardTokens;  ///< rows under way have at most so many tokens, prompts included
};

struct GenerateRow {
  std::vector<TokenId> prompt;  ///< at least one token
  int64_t max_new_tokens = 0;
};

/// The new ids of each row, without the prompt. Rows are run together in batches of similar length.
std::vector<std::vector<TokenId>> generate(const CausalLM& model, std::span<const GenerateRow> rows,
                                           const GenerateOptions& options);

}  // namespace lancet
