#include "few_rows_loops.h"

#include "host_loops.h"

namespace lancet {
namespace {

inline __attribute__((always_inline)) void dots_body(const RowDots& dots) {
  for (int64_t n = 0; n < dots.rows; ++n) {
    const float* const row = dots.row;
    const float* const x = dots.x + n * dots.columns;
    const int64_t columns = dots.columns;
    // several sums, so that one addition need not wait for the one before
    constexpr int64_t kSums = 64;
    float sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums <= columns; i += kSums)
#pragma omp simd
      for (int64_t lane = 0; lane < kSums; ++lane) sums[lane] += row[i + lane] * x[i + lane];
    float sum = 0;
    for (; i < columns; ++i) sum += row[i] * x[i];
#pragma omp simd reduction(+ : sum)
    for (int64_t lane = 0; lane < kSums; ++lane) sum += sums[lane];
    dots.out[n * dots.stride] = sum;
  }
}

}  // namespace

LANCET_FUSED_CLONES(compute_row_dots, dots_body, (const RowDots& dots), (dots))

LANCET_CLONES void round_row_to_bf16(float* row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) row[i] = widened_bf16(narrowed_bf16(row[i]));
}

}  // namespace lancet
