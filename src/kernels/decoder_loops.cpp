#include "decoder_loops.h"

#include "host_loops.h"

namespace lancet {
namespace {

/// 1 / rms of one row.
template <typename T>
inline Wide<T> inverse_rms(const T* x, int64_t width, double eps) {
  Wide<T> sum = 0;
  for (int64_t i = 0; i < width; ++i) sum += square_term(x[i]);
  return inverse_rms_of(sum, static_cast<Wide<T>>(width), static_cast<Wide<T>>(eps));
}

template <typename T>
inline void norm_rows(const RmsNormRows<T>& rows, T* y, RowRange range) {
  const T* weight = rows.weight;
  for (int64_t row = range.begin; row < range.end; ++row) {
    const T* x = rows.x + row * rows.width;
    T* out = y + row * rows.width;
    const Wide<T> scale = inverse_rms(x, rows.width, rows.eps);
#pragma omp simd
    for (int64_t i = 0; i < rows.width; ++i) out[i] = normed(x[i], weight[i], scale);
  }
}

template <typename T>
inline void norm_gradient_rows(const RmsNormRows<T>& rows, const T* grad_y, T* grad_x, RowRange range) {
  const T* weight = rows.weight;
  for (int64_t row = range.begin; row < range.end; ++row) {
    const T* x = rows.x + row * rows.width;
    const T* gy = grad_y + row * rows.width;
    T* gx = grad_x + row * rows.width;
    const Wide<T> scale = inverse_rms(x, rows.width, rows.eps);
    Wide<T> along = 0;
    for (int64_t i = 0; i < rows.width; ++i) along += along_term(x[i], weight[i], gy[i]);
    along *= along_factor(scale, static_cast<Wide<T>>(rows.width));
#pragma omp simd
    for (int64_t i = 0; i < rows.width; ++i) gx[i] = norm_gradient(x[i], weight[i], gy[i], scale, along);
  }
}

template <typename T>
inline void gate_values(const GatedValues<T>& values, T* y, RowRange range) {
  const T* gate = values.gate;
  const T* up = values.up;
#pragma omp simd
  for (int64_t i = range.begin; i < range.end; ++i) y[i] = gated(gate[i], up[i]);
}

template <typename T>
inline void gate_gradients(const GatedValues<T>& values, const T* grad_y, T* grad_gate, T* grad_up, RowRange range) {
  const T* gate = values.gate;
  const T* up = values.up;
#pragma omp simd
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Wide<T> g = wide(gate[i]);
    const Wide<T> s = sigmoid(g);
    const Wide<T> gy = wide(grad_y[i]);
    grad_gate[i] = gate_gradient<T>(g, s, up[i], gy);
    grad_up[i] = up_gradient<T>(g, s, gy);
  }
}

enum class Way { kForward, kBack };

template <Way kWay, typename T>
inline void rotate_rows(const RotaryRows<T>& rows, T* y, RowRange range) {
  const int64_t half = rows.dim / 2;
  for (int64_t row = range.begin; row < range.end; ++row) {
    const T* cos = rows.cos + row * rows.dim;
    const T* sin = rows.sin + row * rows.dim;
    for (int64_t head = 0; head < rows.heads; ++head) {
      const T* x = rows.x + (row * rows.heads + head) * rows.dim;
      T* out = y + (row * rows.heads + head) * rows.dim;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const Wide<T> a = wide(x[i]), b = wide(x[i + half]);
        const Wide<T> cos_a = wide(cos[i]), cos_b = wide(cos[i + half]);
        const Wide<T> sin_a = wide(sin[i]), sin_b = wide(sin[i + half]);
        out[i] = kWay == Way::kForward ? turned_down<T>(a, b, cos_a, sin_a) : turned_up<T>(a, b, cos_a, sin_b);
        out[i + half] = kWay == Way::kForward ? turned_up<T>(b, a, cos_b, sin_b) : turned_down<T>(b, a, cos_b, sin_a);
      }
    }
  }
}

}  // namespace

#define LANCET_DECODER_LOOPS(T)                                                                                        \
  LANCET_CLONES void rms_norm_forward(const RmsNormRows<T>& rows, T* y, RowRange range) { norm_rows(rows, y, range); } \
  LANCET_CLONES void rms_norm_backward(const RmsNormRows<T>& rows, const T* grad_y, T* grad_x, RowRange range) {       \
    norm_gradient_rows(rows, grad_y, grad_x, range);                                                                   \
  }                                                                                                                    \
  LANCET_CLONES void silu_times_forward(const GatedValues<T>& values, T* y, RowRange range) {                          \
    gate_values(values, y, range);                                                                                     \
  }                                                                                                                    \
  LANCET_CLONES void silu_times_backward(const GatedValues<T>& values, const T* grad_y, T* grad_gate, T* grad_up,      \
                                         RowRange range) {                                                             \
    gate_gradients(values, grad_y, grad_gate, grad_up, range);                                                         \
  }                                                                                                                    \
  LANCET_CLONES void rotate_forward(const RotaryRows<T>& rows, T* y, RowRange range) {                                 \
    rotate_rows<Way::kForward>(rows, y, range);                                                                        \
  }                                                                                                                    \
  LANCET_CLONES void rotate_backward(const RotaryRows<T>& rows, T* grad_x, RowRange range) {                           \
    rotate_rows<Way::kBack>(rows, grad_x, range);                                                                      \
  }
LANCET_DECODER_LOOPS(float)
LANCET_DECODER_LOOPS(double)
LANCET_DECODER_LOOPS(c10::BFloat16)

}  // namespace lancet
