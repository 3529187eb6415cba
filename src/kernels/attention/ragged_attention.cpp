#include "lancet/kernels/ragged_attention.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "attention_device.h"
#include "device_launch.h"
#include "host_attention.h"
#include "host_dispatch.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

/// Returns the first index of each of some consecutive runs with these lengths, then the end of the last run.
std::vector<int64_t> bounds_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> bounds{0};
  std::partial_sum(lengths.begin(), lengths.end(), std::back_inserter(bounds));
  return bounds;
}

/// Returns the row of each own token.
std::vector<int64_t> rows_of_tokens(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> rows;
  for (size_t row = 0; row < lengths.size(); ++row)
    rows.insert(rows.end(), static_cast<size_t>(lengths[row]), static_cast<int64_t>(row));
  return rows;
}

/// The positions of the layout's queries.
struct QueryPlaces {
  std::vector<int64_t> per_row;
  std::vector<int64_t> row, place;
};

QueryPlaces query_places(const RaggedLayout& layout, const std::vector<int64_t>& token_bounds) {
  QueryPlaces places;
  places.per_row.resize(layout.tokens.size());
  size_t row = 0;
  for (const int64_t token : layout.queries) {
    while (token >= token_bounds[row + 1]) ++row;
    ++places.per_row[row];
    places.row.push_back(static_cast<int64_t>(row));
    places.place.push_back(token - token_bounds[row]);
  }
  return places;
}

int64_t most(const std::vector<int64_t>& lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

PaddedRows padded_rows(const RaggedLayout& layout, const QueryPlaces& queries, at::Device device) {
  const auto n_rows = static_cast<int64_t>(layout.tokens.size());
  PaddedRows padded;
  padded.queries = most(queries.per_row);
  padded.tokens = most(layout.tokens);
  for (const std::vector<int64_t>& row : layout.earlier)
    padded.earlier = std::max(padded.earlier, static_cast<int64_t>(row.size()));
  std::vector<int64_t> token_slots, query_slots, pool(static_cast<size_t>(n_rows * padded.earlier));
  const Tensor mask =
      torch::zeros({n_rows, 1, padded.queries, padded.earlier + padded.tokens}, at::TensorOptions(torch::kBool));
  auto seen = mask.accessor<bool, 4>();
  size_t m = 0;
  for (int64_t row = 0; row < n_rows; ++row) {
    const auto r = static_cast<size_t>(row);
    const auto n_earlier = static_cast<int64_t>(layout.earlier[r].size());
    std::ranges::copy(layout.earlier[r], pool.begin() + row * padded.earlier);
    for (int64_t t = 0; t < layout.tokens[r]; ++t) token_slots.push_back(row * padded.tokens + t);
    for (int64_t q = 0; q < padded.queries; ++q) {
      if (q >= queries.per_row[r]) {  // padding, whose result is not read
        seen[row][0][q][padded.earlier] = true;
        continue;
      }
      query_slots.push_back(row * padded.queries + q);
      const int64_t place = queries.place[m++];
      const int64_t first = layout.window > 0 ? std::max<int64_t>(0, n_earlier + place + 1 - layout.window) : 0;
      for (int64_t s = first; s < n_earlier; ++s) seen[row][0][q][s] = true;
      for (int64_t s = std::max<int64_t>(0, first - n_earlier); s <= place; ++s)
        seen[row][0][q][padded.earlier + s] = true;
    }
  }
  padded.token_slot_N = to_index(token_slots, device);
  padded.query_slot_M = to_index(query_slots, device);
  padded.pool_place_RP = to_index(pool, device);
  padded.mask_R1QS = sent_to(device, mask);
  return padded;
}

/// Puts the rows of [X, ...] at their slots in [R, width, ...]; the rest is zero.
Tensor in_slots(const Tensor& x_X, const Tensor& slot_X, int64_t n_rows, int64_t width) {
  std::vector<int64_t> sizes = x_X.sizes().vec();
  sizes[0] = n_rows * width;
  return torch::zeros(sizes, x_X.options()).index_copy(0, slot_X, x_X).unflatten(0, {n_rows, width});
}

Tensor padded_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const PaddedRows& rows, AttentionRule rule) {
  const int64_t n_rows = rows.mask_R1QS.size(0);
  const auto own = [&](const Tensor& x_NKC) { return in_slots(x_NKC, rows.token_slot_N, n_rows, rows.tokens); };
  const auto earlier = [&](const Tensor& x_KSC) {  // [R, K, P, C]
    return x_KSC.index_select(1, rows.pool_place_RP).unflatten(1, {n_rows, rows.earlier}).transpose(0, 1);
  };
  KeyValuePair prefix;
  if (rows.earlier > 0) prefix = {earlier(pool_KSC.key), earlier(pool_KSC.value)};
  return grouped_attention(in_slots(query_MHC, rows.query_slot_M, n_rows, rows.queries),
                           {own(fresh_NKC.key), own(fresh_NKC.value)}, prefix, rows.mask_R1QS, rule)
      .flatten(0, 1)
      .index_select(0, rows.query_slot_M);
}

}  // namespace

int64_t RaggedLayout::n_tokens() const { return std::accumulate(tokens.begin(), tokens.end(), int64_t{0}); }

bool has_ragged_kernels(at::Device device, at::ScalarType type) {
  return launcher_for(device, type) != nullptr || has_host_loops(device, type);
}

RaggedRows ragged_rows(const RaggedLayout& layout, at::Device device, at::ScalarType type) {
  std::vector<int64_t> earlier_counts, earlier;
  for (const std::vector<int64_t>& row : layout.earlier) {
    earlier_counts.push_back(static_cast<int64_t>(row.size()));
    earlier.insert(earlier.end(), row.begin(), row.end());
  }
  const std::vector<int64_t> token_bounds = bounds_of(layout.tokens);
  const QueryPlaces queries = query_places(layout, token_bounds);
  RaggedRows rows;
  rows.window = layout.window;
  rows.token_bounds = to_index(token_bounds, device);
  rows.token_row_N = to_index(rows_of_tokens(layout.tokens), device);
  rows.earlier_bounds = to_index(bounds_of(earlier_counts), device);
  rows.earlier_E = to_index(earlier, device);
  rows.query_bounds = to_index(bounds_of(queries.per_row), device);
  rows.query_row_M = to_index(queries.row, device);
  rows.query_place_M = to_index(queries.place, device);
  if (!has_ragged_kernels(device, type)) rows.padded = padded_rows(layout, queries, device);
  return rows;
}

Tensor ragged_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const RaggedRows& rows, AttentionRule rule) {
  if (launcher_of(query_MHC) != nullptr) {
    if (query_MHC.size(2) > kMostHeadOfKernels)
      throw PlacementError(cat("attention heads of ", query_MHC.size(2), " numbers: lancet's own kernels take at most ",
                               kMostHeadOfKernels, "; LANCET_KERNELS=torch runs without them"));
    return device_attention(query_MHC, fresh_NKC, pool_KSC, rows, rule).flatten(1);
  }
  if (has_host_loops(query_MHC)) {
    const auto of_all_rows = [](const Tensor& x) { return x.defined() ? x.unsqueeze(0) : x; };
    const EarlierKeys earlier{{of_all_rows(pool_KSC.key), of_all_rows(pool_KSC.value)}, /*is_shared=*/true};
    const HostRows layout{rows.query_bounds,  rows.token_bounds, rows.earlier_bounds, rows.earlier_E,
                          rows.query_place_M, Tensor(),          rows.window};
    return host_attention(query_MHC, fresh_NKC, earlier, layout, rule).flatten(1);
  }
  return padded_attention(query_MHC, fresh_NKC, pool_KSC, rows.padded, rule);
}

}  // namespace lancet
