// The loops of few_rows.cpp over plain memory.
#pragma once

#include <cstdint>

namespace lancet {

/// The product of one row of a matrix with each row of activations: out[n * stride] = row · x[n].
struct RowDots {
  const float* row;  ///< [columns]
  const float* x;    ///< [rows, columns]
  int64_t rows;
  int64_t columns;
  float* out;
  int64_t stride;
};
void compute_row_dots(const RowDots& dots);

/// Rounds each number to bf16, to nearest and ties to even, and keeps it as f32.
void round_row_to_bf16(float* row, int64_t n);

}  // namespace lancet
