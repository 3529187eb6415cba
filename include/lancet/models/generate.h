// Text generation with a KV cache for many rows at once. It works on token ids and knows no tokenizer.
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

// Chooses the next token from a model's logits: the likeliest, or a sample from a part of the distribution. Nucleus
// sampling (top_p): arXiv 1904.09751. The order is that of transformers: temperature, top_k, top_p.

struct SamplingOptions {
  double temperature = 1;  ///< > 0; logits are divided by it
  int64_t top_k = 1;       ///< 1: greedy; k > 1: sample from the k likeliest, renormalised; 0: sample from all
  /// In (0, 1]: among the tokens that top_k leaves, sample from the fewest likeliest whose probabilities sum to at
  /// least top_p.
  double top_p = 1;
  uint64_t seed = 0;

  bool is_greedy() const { return top_k == 1; }
  /// Checks the options. Throws: ConfigError that names each option that is out of range.
  void check() const;
};

/// Draws the next ids of some rows. Each row has its own random numbers, which depend only on the seed and the row's
/// number. Each draw uses one.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, std::span<const int64_t> row_numbers);

  /// Chooses one id for each row: logits [B, V] -> ids on the host.
  std::vector<TokenId> next(const Tensor& logits_BV);

  /// Makes row places[i] the new row i.
  void keep(const std::vector<int64_t>& places);

 private:
  std::vector<TokenId> from_likeliest(const Tensor& logits_BV);
  std::vector<TokenId> from_all(const Tensor& logits_BV);
  std::vector<TokenId> from_nucleus(const Tensor& logits_BV);
  /// Draws one uniform number in [0, 1) for each row: [B, 1] f64 on `device`.
  Tensor draw(at::Device device);

  SamplingOptions options_;
  std::vector<std::mt19937_64> engines_;
};

/// Returns the peak bytes of a draw from `rows` rows of logits, without the logits and their copy in the precise type.
int64_t sampling_bytes(const SamplingOptions& options, int64_t vocab_size, int64_t rows);

struct GenerateOptions {
  std::vector<TokenId> eos_ids;           ///< a row ends after one of these ids; that id is not part of the result
  SamplingOptions sampling;               ///< a row's random numbers depend only on the seed and the row's index
  int64_t first_row = 0;                  ///< index of the first row, if the rows are a part of a larger list
  int64_t batch_tokens = kForwardTokens;  ///< limit on the tokens of the rows in flight, prompts included
  /// Called for each chosen id with its row. Calls for rows of other batches may come from other threads.
  std::function<void(int64_t row, TokenId id)> on_token = {};
  /// Called for each row that has ended, also perhaps from other threads.
  std::function<void(int64_t row)> on_end = {};
  /// Whether a row ends after the ids that were added so far. It is called from the same threads as on_token. Empty:
  /// rows do not end this way.
  std::function<bool(int64_t row, std::span<const TokenId> added)> ends = {};
};

/// The size of a generation: the number of rows, and the tokens of the longest.
struct GenerationSize {
  int64_t rows = 0;
  int64_t row_tokens = 0;  ///< prompt and new tokens
  int64_t prompt_tokens = 0;
  SamplingOptions sampling;
};

struct GenerateRow {
  std::vector<TokenId> prompt;  ///< one token or more
  int64_t max_new_tokens = 0;
};

/// Generates text and returns the new ids of each row, without the prompt. Rows of similar length run together in
/// batches; finished rows leave their batch. Throws: ConfigError for sampling options out of range; NumericError when
/// logits are not finite.
std::vector<std::vector<TokenId>> generate(const CausalLM& model, std::span<const GenerateRow> rows,
                                           const GenerateOptions& options);

/// Returns the new ids for each of `n_weights` sets of weights; each result equals generate() of the row alone with
/// these weights. `put` puts the i-th weights into the model; the caller decides which weights stay there at the end.
/// options.on_token receives i as the row. Throws: as generate(), and what `put` throws.
std::vector<std::vector<TokenId>> generate_in_turns(const CausalLM& model, const GenerateRow& row, int64_t n_weights,
                                                    const std::function<void(int64_t i)>& put,
                                                    const GenerateOptions& options);

}  // namespace lancet
