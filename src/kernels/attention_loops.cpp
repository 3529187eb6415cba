#include "attention_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace lancet {
namespace {

template <typename T>
inline Wide<T> dot(const T* a, const T* b, int64_t size) {
  Wide<T> sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += wide(a[i]) * wide(b[i]);
  return sum;
}

template <typename T>
inline void add_scaled(Wide<T>* to, Wide<T> scale, const T* x, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] += scale * wide(x[i]);
}

template <typename T>
inline void store(const Wide<T>* from, T* to, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) to[i] = narrow<T>(from[i]);
}

template <typename W>
inline W exponential(W x) {
  if constexpr (std::is_same_v<W, float>)
    return expf(x);
  else
    return std::exp(x);
}

/// Takes the softmax in place, over the keys that may be attended to; the others get zero.
template <typename W>
inline void softmax(W* scores, const bool* mask, int64_t size) {
  W most = -std::numeric_limits<W>::infinity();
  for (int64_t s = 0; s < size; ++s)
    if (mask[s]) most = std::max(most, scores[s]);
  W sum = 0;
  for (int64_t s = 0; s < size; ++s) {
    const W weight = exponential(scores[s] - most);
    scores[s] = mask[s] ? weight : W(0);
    sum += scores[s];
  }
  for (int64_t s = 0; s < size; ++s) scores[s] /= sum;
}

/// Places of the vectors of one row's head.
template <typename T>
struct HeadKeys {
  const T* prefix;
  const T* fresh;
  int64_t n_prefix;
  int64_t dim;
  int64_t stride;  ///< distance between fresh ones

  const T* at(int64_t s) const { return s < n_prefix ? prefix + s * dim : fresh + (s - n_prefix) * stride; }
};

template <typename T>
inline HeadKeys<T> head_keys(const AttentionShape& shape, const T* prefix, const T* fresh, int64_t row, int64_t kv) {
  return {prefix + (row * shape.kv_heads + kv) * shape.prefix_stride,
          fresh + (row * shape.fresh * shape.kv_heads + kv) * shape.dim, shape.prefix, shape.dim,
          shape.kv_heads * shape.dim};
}

/// `kDim`: the head dimension where it is a common one, so that its loops have a fixed length; 0: any.
template <int64_t kDim, typename T>
inline void forward_rows(const AttentionShape& shape, const AttentionInput<T>& in, T* out, Wide<T>* weights,
                         RowRange range) {
  const int64_t n_keys = shape.keys(), dim = kDim > 0 ? kDim : shape.dim;
  std::vector<Wide<T>> mixed(static_cast<size_t>(dim));
  for (int64_t row = range.begin; row < range.end; ++row) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      const HeadKeys<T> keys = head_keys(shape, in.prefix_key, in.key, row, head / shape.group());
      const HeadKeys<T> values = head_keys(shape, in.prefix_value, in.value, row, head / shape.group());
      for (int64_t q = 0; q < shape.queries; ++q) {
        const bool* mask = in.mask + (row * shape.queries + q) * n_keys;
        const int64_t place = ((row * shape.queries + q) * shape.heads + head) * dim;
        Wide<T>* w = weights + ((row * shape.heads + head) * shape.queries + q) * n_keys;
        for (int64_t s = 0; s < n_keys; ++s)
          w[s] = mask[s] ? static_cast<Wide<T>>(shape.scale) * dot(in.query + place, keys.at(s), dim) : 0;
        softmax(w, mask, n_keys);
        std::fill(mixed.begin(), mixed.end(), Wide<T>(0));
        for (int64_t s = 0; s < n_keys; ++s)
          if (mask[s]) add_scaled(mixed.data(), w[s], values.at(s), dim);
        store(mixed.data(), out + place, dim);
      }
    }
  }
}

/// Computes, from scores = scale q k and o = sum w v: d v = w d o, d scores = w (d w - sum w d w) with d w = d o v.
template <int64_t kDim, typename T>
inline void backward_rows(const AttentionShape& shape, const AttentionInput<T>& in, const Wide<T>* weights,
                          const T* grad_out, AttentionGradients<T> gradients, RowRange range) {
  using W = Wide<T>;
  const int64_t n_keys = shape.keys(), dim = kDim > 0 ? kDim : shape.dim;
  const int64_t row_size = shape.fresh * shape.kv_heads * dim;
  std::vector<W> grad_key(static_cast<size_t>(row_size)), grad_value(static_cast<size_t>(row_size));
  std::vector<W> grad_query(static_cast<size_t>(dim)), grad_score(static_cast<size_t>(n_keys));
  for (int64_t row = range.begin; row < range.end; ++row) {
    std::fill(grad_key.begin(), grad_key.end(), W(0));
    std::fill(grad_value.begin(), grad_value.end(), W(0));
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t kv = head / shape.group();
      const HeadKeys<T> keys = head_keys(shape, in.prefix_key, in.key, row, kv);
      const HeadKeys<T> values = head_keys(shape, in.prefix_value, in.value, row, kv);
      for (int64_t q = 0; q < shape.queries; ++q) {
        const bool* mask = in.mask + (row * shape.queries + q) * n_keys;
        const int64_t place = ((row * shape.queries + q) * shape.heads + head) * dim;
        const W* w = weights + ((row * shape.heads + head) * shape.queries + q) * n_keys;
        W mean = 0;
        for (int64_t s = 0; s < n_keys; ++s) {
          grad_score[static_cast<size_t>(s)] = mask[s] ? dot(grad_out + place, values.at(s), dim) : W(0);
          mean += w[s] * grad_score[static_cast<size_t>(s)];
        }
        std::fill(grad_query.begin(), grad_query.end(), W(0));
        for (int64_t s = 0; s < n_keys; ++s) {
          if (!mask[s]) continue;
          const W grad = static_cast<W>(shape.scale) * w[s] * (grad_score[static_cast<size_t>(s)] - mean);
          add_scaled(grad_query.data(), grad, keys.at(s), dim);
          if (s < shape.prefix) continue;
          const int64_t fresh = ((s - shape.prefix) * shape.kv_heads + kv) * dim;
          add_scaled(grad_key.data() + fresh, grad, in.query + place, dim);
          add_scaled(grad_value.data() + fresh, w[s], grad_out + place, dim);
        }
        store(grad_query.data(), gradients.query + place, dim);
      }
    }
    store(grad_key.data(), gradients.key + row * row_size, row_size);
    store(grad_value.data(), gradients.value + row * row_size, row_size);
  }
}

/// Calls run(integral constant) with the head dimension or 0.
template <typename Run>
inline void for_dim(const AttentionShape& shape, const Run& run) {
  switch (shape.dim) {
    case 32:
      return run(std::integral_constant<int64_t, 32>{});
    case 64:
      return run(std::integral_constant<int64_t, 64>{});
    case 128:
      return run(std::integral_constant<int64_t, 128>{});
    default:
      return run(std::integral_constant<int64_t, 0>{});
  }
}

}  // namespace

#define LANCET_ATTENTION_LOOPS(T)                                                                                   \
  LANCET_CLONES void attention_forward(const AttentionShape& shape, const AttentionInput<T>& in, T* out,            \
                                       Wide<T>* weights, RowRange range) {                                          \
    for_dim(shape, [&](auto dim) { forward_rows<dim.value>(shape, in, out, weights, range); });                     \
  }                                                                                                                 \
  LANCET_CLONES void attention_backward(const AttentionShape& shape, const AttentionInput<T>& in,                   \
                                        const Wide<T>* weights, const T* grad_out, AttentionGradients<T> gradients, \
                                        RowRange range) {                                                           \
    for_dim(shape, [&](auto dim) { backward_rows<dim.value>(shape, in, weights, grad_out, gradients, range); });    \
  }
LANCET_ATTENTION_LOOPS(float)
LANCET_ATTENTION_LOOPS(double)
LANCET_ATTENTION_LOOPS(c10::BFloat16)

}  // namespace lancet
