#include "lancet/models/batching.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

namespace lancet {

namespace {

int64_t common_prefix(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

std::vector<std::vector<int64_t>> plan_batches(std::span<const int64_t> lengths, BatchLimits limits) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto length = [&](int64_t row) { return lengths[static_cast<size_t>(row)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) < length(b); });
  std::vector<std::vector<int64_t>> batches;
  for (const int64_t row : order) {
    // Sorted ascending: this row would be the widest of the batch.
    const int64_t rows = batches.empty() ? 0 : static_cast<int64_t>(batches.back().size()) + 1;
    const bool fits = rows > 0 && rows <= limits.rows && rows <= limits.tokens / length(row);
    if (!fits) batches.emplace_back();
    batches.back().push_back(row);
  }
  return batches;
}

int64_t longest_usual_text(const ModelConfig& config) {
  const bool differs = config.rope.scaling == RopeConfig::Scaling::kLongRope;
  return differs ? config.rope.original_max_positions : std::numeric_limits<int64_t>::max();
}

std::vector<std::vector<int64_t>> plan_packs(std::span<const std::vector<TokenId>> documents, int64_t max_tokens,
                                             int64_t apart) {
  const auto document = [&](int64_t index) -> const std::vector<TokenId>& {
    return documents[static_cast<size_t>(index)];
  };
  std::vector<int64_t> order(documents.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return document(a) < document(b); });
  const auto is_long = [&](int64_t index) { return std::ssize(document(index)) > apart; };
  std::stable_partition(order.begin(), order.end(), [&](int64_t index) { return !is_long(index); });
  std::vector<std::vector<int64_t>> packs;
  int64_t tokens = 0, places = 0;  // of the last pack
  for (const int64_t index : order) {
    const int64_t length = static_cast<int64_t>(document(index).size());
    // Of all documents of the pack, the one before begins most alike: they are in the order of a dictionary.
    const int64_t fresh =
        packs.empty() ? length : length - common_prefix(document(packs.back().back()), document(index));
    const bool fits_kind = !packs.empty() && is_long(packs.back().back()) == is_long(index);
    if (!fits_kind || tokens + fresh > max_tokens || places + length > 2 * max_tokens) {
      packs.emplace_back();
      tokens = length;
      places = length;
    } else {
      tokens += fresh;
      places += length;
    }
    packs.back().push_back(index);
  }
  for (std::vector<int64_t>& pack : packs)
    std::stable_sort(pack.begin(), pack.end(),
                     [&](int64_t a, int64_t b) { return document(a).size() < document(b).size(); });
  return packs;
}

Tensor in_place_order(const std::vector<Tensor>& parts, const std::vector<int64_t>& order) {
  const Tensor rows = torch::cat(parts);
  return rows.index_select(0, torch::tensor(order, torch::kLong).argsort().to(rows.device()));
}

}  // namespace lancet
