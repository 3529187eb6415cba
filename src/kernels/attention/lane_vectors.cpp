#include "lane_vectors.h"

#include "host_loops.h"

namespace lancet {
namespace {

// Written in this way so that the compiler keeps the sums in registers.

/// Computes to[i] = vectors[i] . x.
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

/// Computes to[i][lane] = vectors[i] . column `lane` for kCount vectors and columns [dim][kWidth].
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

/// The last group overlaps the one before it, so that its vectors are computed twice: this is faster than one by one.
template <int64_t kWidth, typename W>
inline void all_products(Lanes<kWidth>, Vectors<W> vectors, int64_t n, const W* columns, int64_t dim, W* to) {
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

/// Adds to kColumns numbers of each of kSums sums, which are stored one after the other.
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

template <typename W>
inline void mix_all(MixWeights<W> weights, Vectors<W> vectors, int64_t n, W* to, int64_t n_sums, int64_t dim) {
  constexpr int64_t kAtOnce = 4;
  int64_t j = 0;
  const auto rest = [&] { return MixWeights<W>{weights.at + j * weights.sum_step, weights.step, weights.sum_step}; };
  for (; j + kAtOnce <= n_sums; j += kAtOnce) mix_some<kAtOnce>(rest(), vectors, n, to + j * dim, dim);
  for (; j < n_sums; ++j) mix_some<1>(rest(), vectors, n, to + j * dim, dim);
}

}  // namespace

#define LANCET_LANE_PRODUCTS(kWidth, W)                                                                           \
  LANCET_FUSED_CLONES(products, all_products,                                                                     \
                      (Lanes<kWidth> lanes, Vectors<W> vectors, int64_t n, const W* columns, int64_t dim, W* to), \
                      (lanes, vectors, n, columns, dim, to))
#define LANCET_LANE_VECTORS(W)                                                                                     \
  LANCET_LANE_PRODUCTS(kLanes, W)                                                                                  \
  LANCET_LANE_PRODUCTS(kFewLanes, W)                                                                               \
  LANCET_LANE_PRODUCTS(1, W)                                                                                       \
  LANCET_FUSED_CLONES(mix, mix_all,                                                                                \
                      (MixWeights<W> weights, Vectors<W> vectors, int64_t n, W * to, int64_t n_sums, int64_t dim), \
                      (weights, vectors, n, to, n_sums, dim))
LANCET_LANE_VECTORS(float)
LANCET_LANE_VECTORS(double)

}  // namespace lancet
