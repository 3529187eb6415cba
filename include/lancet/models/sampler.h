// The next token from a model's logits: the likeliest, or drawn from a part of the distribution.
// Nucleus (top_p): arXiv 1904.09751. The order is that of transformers: temperature, top_k, top_p.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "lancet/runtime/tensor.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

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

}  // namespace lancet
