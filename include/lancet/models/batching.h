// Rows of different lengths in batches that waste little padding.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// The most that a batch holds: padded tokens (but at least one row), rows.
struct BatchLimits {
  int64_t tokens = std::numeric_limits<int64_t>::max();
  int64_t rows = std::numeric_limits<int64_t>::max();
};

/// Indices of `lengths` (each at least 1) sorted by length (stable) and cut into batches within the limits.
std::vector<std::vector<int64_t>> plan_batches(std::span<const int64_t> lengths, BatchLimits limits);

/// Indices of `documents` cut into packed rows (make_packed_batch) of at most `max_tokens` tokens, and of at most twice
/// as many places, or one document. Documents that begin alike share a row; in a row they are sorted by length. Depends
/// on the documents alone. No row holds both documents of more than `apart` tokens and others.
std::vector<std::vector<int64_t>> plan_packs(std::span<const std::vector<TokenId>> documents, int64_t max_tokens,
                                             int64_t apart = std::numeric_limits<int64_t>::max());

/// The tokens beyond which a text is turned by other frequencies (LongRoPE), which a packed row has one kind of; else
/// no number.
int64_t longest_usual_text(const ModelConfig& config);

/// Puts rows that were computed in the order of the batches back in their places: row i of the batches' results, one
/// after another, belongs to place order[i].
Tensor in_place_order(const std::vector<Tensor>& parts, const std::vector<int64_t>& order);

/// Padded tokens of one forward pass without gradients: enough to fill the matrix units, small beside the weights.
inline constexpr int64_t kForwardTokens = 8192;

}  // namespace lancet
