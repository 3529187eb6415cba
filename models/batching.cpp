#include "lancet/models/batching.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

namespace lancet {

namespace {

/// Indices, ascending by length.
std::vector<int64_t> sorted_by_length(std::span<const int64_t> lengths) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto length = [&](int64_t row) { return lengths[static_cast<size_t>(row)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) < length(b); });
  return order;
}

}  // namespace

std::vector<std::vector<int64_t>> plan_batches(std::span<const int64_t> lengths, int64_t max_tokens) {
  std::vector<std::vector<int64_t>> batches;
  for (const int64_t row : sorted_by_length(lengths)) {
    const int64_t length = lengths[static_cast<size_t>(row)];
    // Sorted ascending: this row would be the widest of the batch.
    const bool fits = !batches.empty() && (static_cast<int64_t>(batches.back().size()) + 1) * length <= max_tokens;
    if (!fits) batches.emplace_back();
    batches.back().push_back(row);
  }
  return batches;
}

std::vector<std::vector<int64_t>> plan_packs(std::span<const int64_t> lengths, int64_t max_tokens) {
  std::vector<std::vector<int64_t>> packs;
  int64_t tokens = 0;  // of the last pack
  for (const int64_t document : sorted_by_length(lengths)) {
    const int64_t length = lengths[static_cast<size_t>(document)];
    if (packs.empty() || tokens + length > max_tokens) {
      packs.emplace_back();
      tokens = 0;
    }
    packs.back().push_back(document);
    tokens += length;
  }
  return packs;
}

Tensor in_place_order(const std::vector<Tensor>& parts, const std::vector<int64_t>& order) {
  const Tensor rows = torch::cat(parts);
  return rows.index_select(0, torch::tensor(order, torch::kLong).argsort().to(rows.device()));
}

}  // namespace lancet
