// Products and sums of contiguous vectors, for the loops of attention_loops.cpp. Compiled for several instruction sets,
// once for all callers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace lancet {

/// Query vectors are processed in groups of this size, each in its own lane of the processor's vectors, so that no sum
/// runs across lanes. At most kTooFew vectors are processed one by one.
inline constexpr int64_t kLanes = 16, kFewLanes = 8, kTooFew = 2;

constexpr int64_t lanes_of(int64_t n) { return n > kFewLanes ? kLanes : n > kTooFew ? kFewLanes : 1; }

template <int64_t kWidth>
using Lanes = std::integral_constant<int64_t, kWidth>;

template <typename W>
using Vectors = const W* const*;

/// Weights of sums of vectors: the weight of vector i in sum j is at[i * step + j * sum_step].
template <typename W>
struct MixWeights {
  const W* at;
  int64_t step;
  int64_t sum_step;
};

#define LANCET_LANE_PRODUCTS(kWidth, W)                                                                      \
  /* Takes the products to[i][lane] = vectors[i] . column `lane`, of n vectors and columns [dim][kWidth]. */ \
  void products(Lanes<kWidth> lanes, Vectors<W> vectors, int64_t n, const W* columns, int64_t dim, W* to);
#define LANCET_LANE_VECTORS(W)                                                                                    \
  LANCET_LANE_PRODUCTS(kLanes, W)                                                                                 \
  LANCET_LANE_PRODUCTS(kFewLanes, W)                                                                              \
  LANCET_LANE_PRODUCTS(1, W)                                                                                      \
  /* Adds to sum j = 0..n_sums - 1, which lie one after the other: sum over i of weight (i, j) times vector i. */ \
  void mix(MixWeights<W> weights, Vectors<W> vectors, int64_t n, W* to, int64_t n_sums, int64_t dim);
LANCET_LANE_VECTORS(float)
LANCET_LANE_VECTORS(double)
#undef LANCET_LANE_VECTORS
#undef LANCET_LANE_PRODUCTS

/// The largest number of each column of x [n][kWidth].
template <int64_t kWidth, typename W>
inline void greatest(const W* x, int64_t n, W* to) {
  constexpr int64_t kAtOnce = kWidth == 1 ? kLanes : kWidth;
  W most[kAtOnce];
  std::fill(most, most + kAtOnce, -std::numeric_limits<W>::infinity());
  int64_t i = 0;
  for (; i + kAtOnce <= n * kWidth; i += kAtOnce)
#pragma omp simd
    for (int64_t lane = 0; lane < kAtOnce; ++lane) most[lane] = x[i + lane] > most[lane] ? x[i + lane] : most[lane];
  for (; i < n * kWidth; ++i) most[0] = std::max(most[0], x[i]);  // of one column
  if constexpr (kWidth == 1)
    *to = *std::max_element(most, most + kAtOnce);
  else
    std::copy(most, most + kAtOnce, to);
}

/// Stores vectors [n][dim] as columns [dim][kWidth]; columns beyond n are zero.
template <int64_t kWidth, typename W>
inline void to_columns(Vectors<W> vectors, int64_t n, int64_t dim, W* columns) {
  for (int64_t c = 0; c < dim; ++c) {
    W* column = columns + c * kWidth;
    for (int64_t lane = 0; lane < n; ++lane) column[lane] = vectors[lane][c];
    for (int64_t lane = n; lane < kWidth; ++lane) column[lane] = 0;
  }
}

}  // namespace lancet
