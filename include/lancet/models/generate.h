// Text generation with a KV cache, many rows at once. Works on token ids; tokenizers stay outside.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "lancet/models/batching.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/tensor.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

// The next token from a model's logits: the likeliest, or drawn from a part of the distribution.
// Nucleus (top_p): arXiv 1904.09751. The order is that of transformers: temperature, top_k, top_p.

struct SamplingOptions {
  double temperature = 1;  ///< > 0; logits are divided by it
  int64_t top_k = 1;       ///< 1: greedy; else sampled from the k likeliest, renormalised; 0: from all
  double top_p = 1;  ///< share in (0, 1]: of those, the fewest likeliest whose probabilities sum to at least top_p
  uint64_t seed = 0;

  bool is_greedy() const { return top_k == 1; }
  /// Throws: ConfigError that names each option out of its range.
  void check() const;
};

/// Draws the next ids of some rows. Each has random numbers of its own, which depend on the seed and the row's number
/// alone; a draw takes one.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, std::span<const int64_t> row_numbers);

  /// logits [B, V] -> one id a row, on the host.
  std::vector<TokenId> next(const Tensor& logits_BV);

  /// Row i becomes row places[i].
  void keep(const std::vector<int64_t>& places);

 private:
  std::vector<TokenId> from_likeliest(const Tensor& logits_BV);
  std::vector<TokenId> from_all(const Tensor& logits_BV);
  std::vector<TokenId> from_nucleus(const Tensor& logits_BV);
  /// One uniform number in [0, 1) a row: [B, 1] f64 on `device`.
  Tensor draw(at::Device device);

  SamplingOptions options_;
  std::vector<std::mt19937_64> engines_;
};

/// What a draw from `rows` rows of logits holds beside them and their precise copy, at its fullest.
int64_t sampling_bytes(const SamplingOptions& options, int64_t vocab_size, int64_t rows);

struct GenerateOptions {
  std::vector<TokenId> eos_ids;           ///< a row ends after one of these; the id itself is not part of the result
  SamplingOptions sampling;               ///< a row's random numbers depend on the seed and the row's index only
  int64_t first_row = 0;                  ///< index of the first row, where the rows are a part of more
  int64_t batch_tokens = kForwardTokens;  ///< rows under way have at most so many tokens, prompts included
  /// Told of each id as it is chosen, with its row; rows of other batches may be told of from other threads.
  std::function<void(int64_t row, TokenId id)> on_token = {};
  /// Told of each row that is over, likewise.
  std::function<void(int64_t row)> on_end = {};
  /// Whether a row ends after what was added to it so far; asked as on_token is told. Empty: no.
  std::function<bool(int64_t row, std::span<const TokenId> added)> ends = {};
};

/// Rows that are generated, the longest of them.
struct GenerationSize {
  int64_t rows = 0;
  int64_t row_tokens = 0;  ///< prompt and what is added
  int64_t prompt_tokens = 0;
  SamplingOptions sampling;
};

struct GenerateRow {
  std::vector<TokenId> prompt;  ///< one token or more
  int64_t max_new_tokens = 0;
};

/// The new ids of each row, without the prompt. Rows are run together in batches of similar length; rows
/// that are done leave their batch. Throws: ConfigError for sampling options out of their range; NumericError when
/// logits are not finite.
std::vector<std::vector<TokenId>> generate(const CausalLM& model, std::span<const GenerateRow> rows,
                                           const GenerateOptions& options);

/// Returns the new ids by each of `n_weights` weights, as generate() gives them of the row alone. `put` puts the i-th
/// weights in the model; what it leaves there at the end is the caller's. options.on_token is told of i as the row.
/// Throws: as generate(), and what `put` throws.
std::vector<std::vector<TokenId>> generate_in_turns(const CausalLM& model, const GenerateRow& row, int64_t n_weights,
                                                    const std::function<void(int64_t i)>& put,
                                                    const GenerateOptions& options);

}  // namespace lancet
