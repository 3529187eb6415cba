// Products and sums of vectors whose numbers lie side by side, for the loops of attention_loops.cpp: written so that
// the compiler keeps sums in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace lancet {

/// Vectors of queries are taken so many at a time, each a lane of the processor's vectors: then no sum runs across one.
/// Too few for that are taken one by one.
inline constexpr int64_t kLanes = 16, kFewLanes = 8, kTooFew = 2;

constexpr int64_t lanes_of(int64_t n) { return n > kFewLanes ? kLanes : n > kTooFew ? kFewLanes : 1; }

template <typename W>
using Vectors = const W* const*;

/// Takes the products to[i] = vectors[i] . x.
template <typename W>
inline void dots(Vectors<W> vectors, int64_t n, const W* x, int64_t dim, W* to) {
  constexpr int64_t kBlock = 32;
  for (int64_t i = 0; i < n; ++i) {
    const W* vector = vectors[i];
    W sum = 0;
    int64_t c = 0;
    for (; c + kBlock <= dim; c += kBlock)
#pragma omp simd reduction(+ : sum)
      for (int64_t b = 0; b < kBlock; ++b) sum += vector[c + b] * x[c + b];
    for (; c < dim; ++c) sum += vector[c] * x[c];
    to[i] = sum;
  }
}

/// Takes the products to[i][lane] = vectors[i] . column `lane`, of columns [dim][kWidth], for kCount vectors.
template <int64_t kWidth, int64_t kCount, typename W>
inline void products_of_some(Vectors<W> vectors, const W* columns, int64_t dim, W* to) {
  W sums[kCount][kWidth] = {};
  for (int64_t c = 0; c < dim; ++c)
    for (int64_t i = 0; i < kCount; ++i) {
      const W x = vectors[i][c];
#pragma omp simd
      for (int64_t lane = 0; lane < kWidth; ++lane) sums[i][lane] += x * columns[c * kWidth + lane];
    }
  for (int64_t i = 0; i < kCount; ++i)
#pragma omp simd
    for (int64_t lane = 0; lane < kWidth; ++lane) to[i * kWidth + lane] = sums[i][lane];
}

/// Takes the products of n vectors. Some are taken twice at the end: that is faster than one by one.
template <int64_t kWidth, typename W>
inline void products(Vectors<W> vectors, int64_t n, const W* columns, int64_t dim, W* to) {
  constexpr int64_t kAtOnce = 6;
  if constexpr (kWidth == 1) return dots(vectors, n, columns, dim, to);
  if (n < kAtOnce) {
    for (int64_t i = 0; i < n; ++i) products_of_some<kWidth, 1>(vectors + i, columns, dim, to + i * kWidth);
    return;
  }
  for (int64_t i = 0; i < n; i += kAtOnce) {
    const int64_t begin = std::min(i, n - kAtOnce);
    products_of_some<kWidth, kAtOnce>(vectors + begin, columns, dim, to + begin * kWidth);
  }
}

/// Weights of a sum of vectors: that of vector i in sum j is at[i * step + j * sum_step].
template <typename W>
struct MixWeights {
  const W* at;
  int64_t step;
  int64_t sum_step;
};

/// Adds to kSums sums, which lie one after the other, kColumns of their numbers.
template <int64_t kSums, int64_t kColumns, typename W>
inline void mix_columns(MixWeights<W> weights, Vectors<W> vectors, int64_t n, int64_t column, W* to, int64_t dim) {
  W sums[kSums][kColumns];
  for (int64_t j = 0; j < kSums; ++j)
#pragma omp simd
    for (int64_t c = 0; c < kColumns; ++c) sums[j][c] = to[j * dim + column + c];
  for (int64_t i = 0; i < n; ++i) {
    const W* x = vectors[i] + column;
    for (int64_t j = 0; j < kSums; ++j) {
      const W weight = weights.at[i * weights.step + j * weights.sum_step];
#pragma omp simd
      for (int64_t c = 0; c < kColumns; ++c) sums[j][c] += weight * x[c];
    }
  }
  for (int64_t j = 0; j < kSums; ++j)
#pragma omp simd
    for (int64_t c = 0; c < kColumns; ++c) to[j * dim + column + c] = sums[j][c];
}

template <int64_t kSums, typename W>
inline void mix_some(MixWeights<W> weights, Vectors<W> vectors, int64_t n, W* to, int64_t dim) {
  constexpr int64_t kWide = 32, kNarrow = 8;
  int64_t column = 0;
  for (; column + kWide <= dim; column += kWide) mix_columns<kSums, kWide>(weights, vectors, n, column, to, dim);
  for (; column + kNarrow <= dim; column += kNarrow) mix_columns<kSums, kNarrow>(weights, vectors, n, column, to, dim);
  for (; column < dim; ++column) mix_columns<kSums, 1>(weights, vectors, n, column, to, dim);
}

/// Adds to sum j = 0..n_sums - 1, which lie one after the other: sum over i of weight (i, j) times vector i.
template <typename W>
inline void mix(MixWeights<W> weights, Vectors<W> vectors, int64_t n, W* to, int64_t n_sums, int64_t dim) {
  constexpr int64_t kAtOnce = 4;
  int64_t j = 0;
  const auto rest = [&] { return MixWeights<W>{weights.at + j * weights.sum_step, weights.step, weights.sum_step}; };
  for (; j + kAtOnce <= n_sums; j += kAtOnce) mix_some<kAtOnce>(rest(), vectors, n, to + j * dim, dim);
  for (; j < n_sums; ++j) mix_some<1>(rest(), vectors, n, to + j * dim, dim);
}

/// The greatest of each column of x [n][kWidth].
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

/// Vectors [n][dim] as columns [dim][kWidth], zero beyond the n.
template <int64_t kWidth, typename W>
inline void to_columns(Vectors<W> vectors, int64_t n, int64_t dim, W* columns) {
  for (int64_t c = 0; c < dim; ++c) {
    W* column = columns + c * kWidth;
    for (int64_t lane = 0; lane < n; ++lane) column[lane] = vectors[lane][c];
    for (int64_t lane = n; lane < kWidth; ++lane) column[lane] = 0;
  }
}

}  // namespace lancet
