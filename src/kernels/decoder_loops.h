// The loops behind decoder_ops, on plain memory, over rows [begin, end). bf16 is computed in f32, and each result is
// rounded once. Compiled for several instruction sets.
#pragma once

#include <cstdint>

#include "host_loops.h"

namespace lancet {

/// Rows of `width` values.
template <typename T>
struct RmsNormRows {
  const T* x;
  const T* weight;
  int64_t width;
  double eps;
};

/// `n` values each.
template <typename T>
struct GatedValues {
  const T* gate;
  const T* up;
};

/// Rows of `heads` vectors of `dim`; the tables have one vector of `dim` for each row.
template <typename T>
struct RotaryRows {
  const T* x;
  const T* cos;
  const T* sin;
  int64_t heads;
  int64_t dim;
};

#define LANCET_DECODER_LOOPS(T)                                                                                      \
  /* y = weight * (x / rms(x)) */                                                                                    \
  void rms_norm_forward(const RmsNormRows<T>& rows, T* y, RowRange range);                                           \
  /* grad_x from grad_y; the rms is taken again */                                                                   \
  void rms_norm_backward(const RmsNormRows<T>& rows, const T* grad_y, T* grad_x, RowRange range);                    \
  /* y = silu(gate) * up */                                                                                          \
  void silu_times_forward(const GatedValues<T>& values, T* y, RowRange range);                                       \
  void silu_times_backward(const GatedValues<T>& values, const T* grad_y, T* grad_gate, T* grad_up, RowRange range); \
  void rotate_forward(const RotaryRows<T>& rows, T* y, RowRange range);                                              \
  /* the transpose of the rotation: rows.x is the gradient of y */                                                   \
  void rotate_backward(const RotaryRows<T>& rows, T* grad_x, RowRange range);
LANCET_DECODER_LOOPS(float)
LANCET_DECODER_LOOPS(double)
LANCET_DECODER_LOOPS(c10::BFloat16)
#undef LANCET_DECODER_LOOPS

}  // namespace lancet
