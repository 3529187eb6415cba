// Kernels for the element-wise parts of a decoder layer and for the loss of tokens. NVRTC compiles this text when a GPU
// is first used; tests/support/emulated_kernels.cpp runs it on the host. Where a row has a sum, a block takes a row at
// a time; any whole number of warps, any number of blocks. Sums are taken in at least f32, in an order that is the same
// in every run.
#include "attention_rows.h"
#include "threads.h"

namespace lancet {

// ---- Norm

/// Rows of `width`. With `added`, x + added is normed and goes to `sum` too.
template <typename T>
__device__ inline void norm_rows(const T* x, const T* added, T* sum, const T* weight, T* y, Index rows, Index width,
                                 double eps) {
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const Index begin = row * width;
    const T* normed_row = (added == nullptr ? x : sum) + begin;
    Wide<T> squares = 0;
    for (Index i = first_number(); i < width; i += next_numbers()) {
      if (added != nullptr) sum[begin + i] = sum_of(x[begin + i], added[begin + i]);
      squares += square_term(normed_row[i]);
    }
    squares = joined_in_block(squares, Wide<T>(0));
    const Wide<T> scale = inverse_rms_of(squares, static_cast<Wide<T>>(width), static_cast<Wide<T>>(eps));
    for (Index i = first_number(); i < width; i += next_numbers())
      y[begin + i] = normed(normed_row[i], weight[i], scale);
  }
}

/// Computes the rows' gradients. `grad_sum`: what else flows into x, which is added to the gradient.
template <typename T>
__device__ inline void norm_gradient_rows(const T* x, const T* weight, const T* grad_y, const T* grad_sum, T* grad_x,
                                          Index rows, Index width, double eps) {
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const Index begin = row * width;
    Wide<T> squares = 0, along = 0;
    for (Index i = first_number(); i < width; i += next_numbers()) {
      squares += square_term(x[begin + i]);
      along += along_term(x[begin + i], weight[i], grad_y[begin + i]);
    }
    squares = joined_in_block(squares, Wide<T>(0));
    along = joined_in_block(along, Wide<T>(0));
    const Wide<T> n = static_cast<Wide<T>>(width);
    const Wide<T> scale = inverse_rms_of(squares, n, static_cast<Wide<T>>(eps));
    along *= along_factor(scale, n);
    for (Index i = first_number(); i < width; i += next_numbers()) {
      const T gradient = norm_gradient(x[begin + i], weight[i], grad_y[begin + i], scale, along);
      grad_x[begin + i] = grad_sum == nullptr ? gradient : sum_of(grad_sum[begin + i], gradient);
    }
  }
}

// ---- Gated activation

template <typename T>
__device__ inline void gate_numbers(const T* gate, const T* up, T* y, Index n) {
  for (Index i = first_row() * next_numbers() + first_number(); i < n; i += next_rows() * next_numbers())
    y[i] = gated(gate[i], up[i]);
}

template <typename T>
__device__ inline void gate_gradient_numbers(const T* gate, const T* up, const T* grad_y, T* grad_gate, T* grad_up,
                                             Index n) {
  for (Index i = first_row() * next_numbers() + first_number(); i < n; i += next_rows() * next_numbers()) {
    const Wide<T> g = wide(gate[i]), s = sigmoid(g), gy = wide(grad_y[i]);
    grad_gate[i] = gate_gradient<T>(g, s, up[i], gy);
    grad_up[i] = up_gradient<T>(g, s, gy);
  }
}

// ---- Rotary embedding

/// Rows of `heads` vectors of `dim`; the tables have a vector a row. `back`: 1: the transpose, for gradients.
template <typename T>
__device__ inline void rotate_rows(const T* x, const T* cos, const T* sin, T* y, Index rows, int heads, int dim,
                                   int back) {
  const int half = dim / 2, pairs = heads * half;
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const T* cos_row = cos + row * dim;
    const T* sin_row = sin + row * dim;
    for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += static_cast<int>(blockDim.x)) {
      const int i = pair % half;
      const Index at = (row * heads + pair / half) * dim + i;
      const Wide<T> a = wide(x[at]), b = wide(x[at + half]);
      const Wide<T> cos_a = wide(cos_row[i]), cos_b = wide(cos_row[i + half]);
      const Wide<T> sin_a = wide(sin_row[i]), sin_b = wide(sin_row[i + half]);
      y[at] = back == 0 ? turned_down<T>(a, b, cos_a, sin_a) : turned_up<T>(a, b, cos_a, sin_b);
      y[at + half] = back == 0 ? turned_up<T>(b, a, cos_b, sin_b) : turned_down<T>(b, a, cos_b, sin_a);
    }
  }
}

// ---- Losses of tokens

/// Each row's -log softmax(logits)[id]; `greatest` and `log_sum` are what the softmax is made of, for the gradient. An
/// id outside of the row gives no number.
template <typename T>
__device__ inline void loss_rows(const T* logits, const Index* ids, Wide<T>* loss, Wide<T>* greatest, Wide<T>* log_sum,
                                 Index rows, Index width) {
  const Wide<T> none = -static_cast<Wide<T>>(kInfinity);
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const T* x = logits + row * width;
    SoftmaxSum<Wide<T>> all = {none, 0};
    for (Index i = first_number(); i < width; i += next_numbers())
      all = joined(all, SoftmaxSum<Wide<T>>{wide(x[i]), 1});
    all = joined_in_block(all, SoftmaxSum<Wide<T>>{none, 0});
    if (threadIdx.x == 0) {
      const Index id = ids[row];
      greatest[row] = all.greatest;
      log_sum[row] = logarithm(all.sum);
      loss[row] = id >= 0 && id < width ? token_loss(wide(x[id]), all.greatest, logarithm(all.sum))
                                        : static_cast<Wide<T>>(kNotANumber);
    }
  }
}

template <typename T>
__device__ inline void loss_gradient_rows(const T* logits, const Index* ids, const Wide<T>* greatest,
                                          const Wide<T>* log_sum, const Wide<T>* grad_loss, T* grad_logits, Index rows,
                                          Index width) {
  for (Index row = first_row(); row < rows; row += next_rows())
    for (Index i = first_number(); i < width; i += next_numbers())
      grad_logits[row * width + i] =
          logit_gradient(logits[row * width + i], greatest[row], log_sum[row],
                         static_cast<Wide<T>>(i == ids[row] ? 1 : 0), grad_loss[row]);
}

}  // namespace lancet

// What is launched: each of the above for a type.
#define LANCET_KERNELS(NAME, T)                                                                                       \
  extern "C" __global__ void lancet_norm_##NAME(const T* x, const T* added, T* sum, const T* weight, T* y,                   \
                                         lancet::Index rows, lancet::Index width, double eps) {                       \
    lancet::norm_rows(x, added, sum, weight, y, rows, width, eps);                                                    \
  }                                                                                                                   \
  extern "C" __global__ void lancet_norm_gradient_##NAME(const T* x, const T* weight, const T* grad_y, const T* grad_sum,    \
                                                  T* grad_x, lancet::Index rows, lancet::Index width, double eps) {   \
    lancet::norm_gradient_rows(x, weight, grad_y, grad_sum, grad_x, rows, width, eps);                                \
  }                                                                                                                   \
  extern "C" __global__ void lancet_gate_##NAME(const T* gate, const T* up, T* y, lancet::Index n) {                         \
    lancet::gate_numbers(gate, up, y, n);                                                                             \
  }                                                                                                                   \
  extern "C" __global__ void lancet_gate_gradient_##NAME(const T* gate, const T* up, const T* grad_y, T* grad_gate,          \
                                                  T* grad_up, lancet::Index n) {                                      \
    lancet::gate_gradient_numbers(gate, up, grad_y, grad_gate, grad_up, n);                                           \
  }                                                                                                                   \
  extern "C" __global__ void lancet_rotate_##NAME(const T* x, const T* cos, const T* sin, T* y, lancet::Index rows,          \
                                           int heads, int dim, int back) {                                            \
    lancet::rotate_rows(x, cos, sin, y, rows, heads, dim, back);                                                      \
  }                                                                                                                   \
  extern "C" __global__ void lancet_ragged_attention_##NAME(                                                                 \
      const T* query, const T* key, const T* value, const T* pool_key, const T* pool_value,                           \
      const lancet::Index* token_bounds, const lancet::Index* earlier_bounds, const lancet::Index* earlier,           \
      const lancet::Index* query_row, const lancet::Index* query_place, T* out, lancet::SoftmaxSum<lancet::Wide<T>>* softmax,\
      lancet::Index queries, lancet::Index head_stride, lancet::Index window, int heads, int kv_heads, int dim,       \
      double scale, double cap) {                                                                                     \
    const lancet::KeysOfRows<T> keys = {key, value, pool_key, pool_value, token_bounds, earlier_bounds, earlier,      \
                                        head_stride, kv_heads, dim};                                                  \
    lancet::attend(query, keys, query_row, query_place, out, softmax, queries,                                       \
                   lancet::attention_rule<T>(window, heads, scale, cap));                                             \
  }                                                                                                                   \
  extern "C" __global__ void lancet_ragged_query_gradient_##NAME(                                                            \
      const T* query, const T* key, const T* value, const T* pool_key, const T* pool_value,                           \
      const lancet::Index* token_bounds, const lancet::Index* earlier_bounds, const lancet::Index* earlier,           \
      const lancet::Index* query_row, const lancet::Index* query_place, const T* grad_out,                            \
      const lancet::SoftmaxSum<lancet::Wide<T>>* softmax, T* grad_query, lancet::Wide<T>* means, lancet::Index queries,                  \
      lancet::Index head_stride, lancet::Index window, int heads, int kv_heads, int dim, double scale, double cap) {  \
    const lancet::KeysOfRows<T> keys = {key, value, pool_key, pool_value, token_bounds, earlier_bounds, earlier,      \
                                        head_stride, kv_heads, dim};                                                  \
    lancet::query_gradient(query, keys, query_row, query_place, grad_out, softmax, grad_query, means, queries,       \
                           lancet::attention_rule<T>(window, heads, scale, cap));                                     \
  }                                                                                                                   \
  extern "C" __global__ void lancet_ragged_key_gradient_##NAME(                                                              \
      const T* query, const T* key, const T* value, const lancet::Index* token_bounds,                                \
      const lancet::Index* token_row, const lancet::Index* query_bounds, const lancet::Index* query_place,            \
      const T* grad_out, const lancet::SoftmaxSum<lancet::Wide<T>>* softmax, const lancet::Wide<T>* means, T* grad_key, T* grad_value,   \
      lancet::Index tokens, lancet::Index window, int heads, int kv_heads, int dim, double scale, double cap) {       \
    const lancet::QueriesOfRows<T> queries = {query, grad_out, softmax, means, token_bounds, query_bounds,           \
                                              query_place, dim};                                                      \
    lancet::key_gradient(key, value, queries, token_row, grad_key, grad_value, tokens, kv_heads,                      \
                         lancet::attention_rule<T>(window, heads, scale, cap));                                       \
  }                                                                                                                   \
  extern "C" __global__ void lancet_loss_##NAME(const T* logits, const lancet::Index* ids, lancet::Wide<T>* loss,            \
                                         lancet::Wide<T>* greatest, lancet::Wide<T>* log_sum, lancet::Index rows,     \
                                         lancet::Index width) {                                                       \
    lancet::loss_rows(logits, ids, loss, greatest, log_sum, rows, width);                                             \
  }                                                                                                                   \
  extern "C" __global__ void lancet_loss_gradient_##NAME(const T* logits, const lancet::Index* ids,                          \
                                                  const lancet::Wide<T>* greatest, const lancet::Wide<T>* log_sum,    \
                                                  const lancet::Wide<T>* grad_loss, T* grad_logits,                   \
                                                  lancet::Index rows, lancet::Index width) {                          \
    lancet::loss_gradient_rows(logits, ids, greatest, log_sum, grad_loss, grad_logits, rows, width);                  \
  }
#define LANCET_KERNELS_OF(NAME, T) LANCET_KERNELS(NAME, T)
#ifdef LANCET_KERNEL_TYPE  // NVRTC compiles one type at a time: the others may never be used
LANCET_KERNELS_OF(LANCET_KERNEL_NAME, LANCET_KERNEL_TYPE)
#endif
