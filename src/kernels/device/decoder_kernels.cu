// Kernels for the element-wise parts of a decoder layer and for the loss of tokens. NVRTC compiles this text when a GPU
// is first used; tests/support/emulated_kernels.cpp runs it on the host. Where a row has a sum, a block takes a row at
// a time; any whole number of warps, any number of blocks. Sums are taken in at least f32, in an order that is the same
// in every run.
#include "attention_gradients.h"
#include "attention_rows.h"
#include "head_rows.h"
#include "threads.h"

namespace lancet {

// ---- Norm

/// Numbers of a row, with `added` their sums with those.
template <typename Chunk, typename T>
__device__ inline Chunk summed(const T* x, const T* added) {
  Chunk chunk = Chunk::from(x);
  if (added == nullptr) return chunk;
  const Chunk more = Chunk::from(added);
  LANCET_UNROLL for (int j = 0; j < Chunk::kSize; ++j) chunk.numbers[j] = sum_of(chunk.numbers[j], more.numbers[j]);
  return chunk;
}

/// Rows of `width`. With `added`, x + added is normed and goes to `sum` too. It is taken twice, of what caches hold.
template <typename T>
__device__ inline void norm_rows(const T* x, const T* added, T* sum, const T* weight, T* y, Index rows, Index width,
                                 double eps) {
  const bool has_packs = is_whole<T>(width) && is_aligned(x, added, sum, weight, y);
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const Index begin = row * width;
    const T* more = added == nullptr ? nullptr : added + begin;
    Wide<T> squares = 0;
    over_row<T>(width, has_packs, [&](auto kind, Index i) {
      const auto chunk = summed<decltype(kind)>(x + begin + i, more == nullptr ? nullptr : more + i);
      if (more != nullptr) chunk.to(sum + begin + i);
      LANCET_UNROLL for (int j = 0; j < kind.kSize; ++j) squares += square_term(chunk.numbers[j]);
    });
    squares = joined_in_block(squares, Wide<T>(0));
    const Wide<T> scale = inverse_rms_of(squares, static_cast<Wide<T>>(width), static_cast<Wide<T>>(eps));
    over_row<T>(width, has_packs, [&](auto kind, Index i) {
      auto chunk = summed<decltype(kind)>(x + begin + i, more == nullptr ? nullptr : more + i);
      const auto weights = kind.from(weight + i);
      LANCET_UNROLL for (int j = 0; j < kind.kSize; ++j) chunk.numbers[j] =
          normed(chunk.numbers[j], weights.numbers[j], scale);
      chunk.to(y + begin + i);
    });
  }
}

/// Computes the rows' gradients. `grad_sum`: what else flows into x, which is added to the gradient.
template <typename T>
__device__ inline void norm_gradient_rows(const T* x, const T* weight, const T* grad_y, const T* grad_sum, T* grad_x,
                                          Index rows, Index width, double eps) {
  const bool has_packs = is_whole<T>(width) && is_aligned(x, weight, grad_y, grad_sum, grad_x);
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const Index begin = row * width;
    Wide<T> squares = 0, along = 0;
    over_row<T>(width, has_packs, [&](auto kind, Index i) {
      const auto xs = kind.from(x + begin + i), weights = kind.from(weight + i), grads = kind.from(grad_y + begin + i);
      LANCET_UNROLL for (int j = 0; j < kind.kSize; ++j) {
        squares += square_term(xs.numbers[j]);
        along += along_term(xs.numbers[j], weights.numbers[j], grads.numbers[j]);
      }
    });
    squares = joined_in_block(squares, Wide<T>(0));
    along = joined_in_block(along, Wide<T>(0));
    const Wide<T> n = static_cast<Wide<T>>(width);
    const Wide<T> scale = inverse_rms_of(squares, n, static_cast<Wide<T>>(eps));
    along *= along_factor(scale, n);
    over_row<T>(width, has_packs, [&](auto kind, Index i) {
      const auto xs = kind.from(x + begin + i), weights = kind.from(weight + i);
      auto grads = kind.from(grad_y + begin + i);
      LANCET_UNROLL for (int j = 0; j < kind.kSize; ++j) grads.numbers[j] =
          norm_gradient(xs.numbers[j], weights.numbers[j], grads.numbers[j], scale, along);
      if (grad_sum != nullptr) grads = summed<decltype(kind)>(grad_sum + begin + i, grads.numbers);
      grads.to(grad_x + begin + i);
    });
  }
}

// ---- Gated activation

/// Rows of `width`. Those of gates and ups, and of their gradients, begin `stride` apart: both may be halves of longer
/// rows, as one product with both matrices gives them.
template <typename T>
__device__ inline void gate_rows(const T* gate, const T* up, T* y, Index rows, Index width, Index stride) {
  const bool has_packs = is_whole<T>(width) && is_whole<T>(stride) && is_aligned(gate, up, y);
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const Index begin = row * stride;
    over_row<T>(width, has_packs, [&](auto kind, Index i) {
      const auto ups = kind.from(up + begin + i);
      auto gates = kind.from(gate + begin + i);
      LANCET_UNROLL for (int j = 0; j < kind.kSize; ++j) gates.numbers[j] = gated(gates.numbers[j], ups.numbers[j]);
      gates.to(y + row * width + i);
    });
  }
}

template <typename T>
__device__ inline void gate_gradient_rows(const T* gate, const T* up, const T* grad_y, T* grad_gate, T* grad_up,
                                          Index rows, Index width, Index stride) {
  const bool has_packs =
      is_whole<T>(width) && is_whole<T>(stride) && is_aligned(gate, up, grad_y, grad_gate, grad_up);
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const Index begin = row * stride;
    over_row<T>(width, has_packs, [&](auto kind, Index i) {
      const auto grads = kind.from(grad_y + row * width + i);
      auto gates = kind.from(gate + begin + i), ups = kind.from(up + begin + i);
      LANCET_UNROLL for (int j = 0; j < kind.kSize; ++j) {
        const Wide<T> g = wide(gates.numbers[j]), s = sigmoid(g), gy = wide(grads.numbers[j]);
        gates.numbers[j] = gate_gradient<T>(g, s, ups.numbers[j], gy);
        ups.numbers[j] = up_gradient<T>(g, s, gy);
      }
      gates.to(grad_gate + begin + i);
      ups.to(grad_up + begin + i);
    });
  }
}

// ---- Losses of tokens

/// Softmax's parts over some logits.
template <typename W, typename Chunk>
__device__ inline SoftmaxSum<W> softmax_of(const Chunk& logits) {
  SoftmaxSum<W> all = {wide(logits.numbers[0]), 0};
  LANCET_UNROLL for (int j = 1; j < Chunk::kSize; ++j) {
    const W x = wide(logits.numbers[j]);
    all.greatest = x > all.greatest ? x : all.greatest;
  }
  LANCET_UNROLL for (int j = 0; j < Chunk::kSize; ++j) {
    const W x = wide(logits.numbers[j]);
    all.sum += x == all.greatest ? 1 : exponential(x - all.greatest);  // an infinity less itself is no number
  }
  return all;
}

/// Each row's -log softmax(logits)[id]; `greatest` and `log_sum` are what the softmax is made of, for the gradient. An
/// id outside of the row gives no number.
template <typename T>
__device__ inline void loss_rows(const T* logits, const Index* ids, Wide<T>* loss, Wide<T>* greatest, Wide<T>* log_sum,
                                 Index rows, Index width) {
  const Wide<T> none = -static_cast<Wide<T>>(kInfinity);
  const bool has_packs = is_whole<T>(width) && is_aligned(logits);
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const T* x = logits + row * width;
    SoftmaxSum<Wide<T>> all = {none, 0};
    over_row<T>(width, has_packs,
                [&](auto kind, Index i) { all = joined(all, softmax_of<Wide<T>>(kind.from(x + i))); });
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
  const bool has_packs = is_whole<T>(width) && is_aligned(logits, grad_logits);
  for (Index row = first_row(); row < rows; row += next_rows()) {
    const Index begin = row * width, label = ids[row];
    const Wide<T> most = greatest[row], log = log_sum[row], grad = grad_loss[row];
    over_row<T>(width, has_packs, [&](auto kind, Index i) {
      auto chunk = kind.from(logits + begin + i);
      LANCET_UNROLL for (int j = 0; j < kind.kSize; ++j) chunk.numbers[j] =
          logit_gradient(chunk.numbers[j], most, log, static_cast<Wide<T>>(i + j == label ? 1 : 0), grad);
      chunk.to(grad_logits + begin + i);
    });
  }
}

}  // namespace lancet

// What is launched: each of the above for a type.
#define LANCET_KERNEL extern "C" __global__ void
// Those of rows, of which a block takes one, run up to all threads that a block may have: registers have to suffice. 1: a
// multiprocessor needs to hold no second one of so many; for two of them the compiler would spill.
#define LANCET_ROW_KERNEL LANCET_KERNEL __launch_bounds__(lancet::kWarp* lancet::kMostWarps, 1)
#define LANCET_KERNELS(NAME, T)                                                                                        \
  LANCET_ROW_KERNEL lancet_norm_##NAME(lancet::Read<T> x, lancet::Read<T> added, lancet::Write<T> sum,                 \
                                       lancet::Read<T> weight, lancet::Write<T> y, lancet::Index rows,                 \
                                       lancet::Index width, double eps) {                                              \
    lancet::norm_rows(x, added, sum, weight, y, rows, width, eps);                                                     \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_norm_gradient_##NAME(lancet::Read<T> x, lancet::Read<T> weight, lancet::Read<T> grad_y,     \
                                                lancet::Read<T> grad_sum, lancet::Write<T> grad_x, lancet::Index rows, \
                                                lancet::Index width, double eps) {                                     \
    lancet::norm_gradient_rows(x, weight, grad_y, grad_sum, grad_x, rows, width, eps);                                 \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_gate_##NAME(lancet::Read<T> gate, lancet::Read<T> up, lancet::Write<T> y,                   \
                                       lancet::Index rows, lancet::Index width, lancet::Index stride) {                \
    lancet::gate_rows(gate, up, y, rows, width, stride);                                                               \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_gate_gradient_##NAME(lancet::Read<T> gate, lancet::Read<T> up, lancet::Read<T> grad_y,      \
                                                lancet::Write<T> grad_gate, lancet::Write<T> grad_up,                  \
                                                lancet::Index rows, lancet::Index width, lancet::Index stride) {       \
    lancet::gate_gradient_rows(gate, up, grad_y, grad_gate, grad_up, rows, width, stride);                             \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_rotate_##NAME(lancet::Read<T> x, lancet::Read<T> cos, lancet::Read<T> sin,                  \
                                         lancet::Write<T> y, lancet::Index rows, int heads, int dim, int back) {       \
    lancet::rotate_rows(x, cos, sin, y, rows, heads, dim, back);                                                       \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_split_heads_##NAME(lancet::Read<T> joined, lancet::Read<T> cos, lancet::Read<T> sin,        \
                                              lancet::Write<T> query, lancet::Write<T> key, lancet::Write<T> value,    \
                                              lancet::Index rows, int heads, int kv_heads, int dim) {                  \
    lancet::split_head_rows(joined, cos, sin, query, key, value, rows, heads, kv_heads, dim);                          \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_join_heads_##NAME(lancet::Read<T> query, lancet::Read<T> key, lancet::Read<T> value,        \
                                             lancet::Read<T> cos, lancet::Read<T> sin, lancet::Write<T> joined,        \
                                             lancet::Index rows, int heads, int kv_heads, int dim) {                   \
    lancet::join_head_rows(query, key, value, cos, sin, joined, rows, heads, kv_heads, dim);                           \
  }                                                                                                                    \
  LANCET_KERNEL lancet_ragged_attention_##NAME(                                                                        \
      lancet::Read<T> query, lancet::Read<T> key, lancet::Read<T> value, lancet::Read<T> pool_key,                     \
      lancet::Read<T> pool_value, lancet::Read<lancet::Index> token_bounds,                                            \
      lancet::Read<lancet::Index> earlier_bounds, lancet::Read<lancet::Index> earlier,                                 \
      lancet::Read<lancet::Index> query_row, lancet::Read<lancet::Index> query_place, lancet::Write<T> out,            \
      lancet::Write<lancet::SoftmaxSum<lancet::Wide<T>>> softmax, lancet::Index queries, lancet::Index head_stride,    \
      lancet::Index window, int heads, int kv_heads, int dim, double scale, double cap) {                              \
    const lancet::KeysOfRows<T> keys = {key,     value,       pool_key, pool_value, token_bounds, earlier_bounds,      \
                                        earlier, head_stride, kv_heads, dim};                                          \
    lancet::attend(query, keys, query_row, query_place, out, softmax, queries,                                         \
                   lancet::attention_rule<T>(window, heads, scale, cap));                                              \
  }                                                                                                                    \
  LANCET_KERNEL lancet_ragged_query_gradient_##NAME(                                                                   \
      lancet::Read<T> query, lancet::Read<T> key, lancet::Read<T> value, lancet::Read<T> pool_key,                     \
      lancet::Read<T> pool_value, lancet::Read<lancet::Index> token_bounds,                                            \
      lancet::Read<lancet::Index> earlier_bounds, lancet::Read<lancet::Index> earlier,                                 \
      lancet::Read<lancet::Index> query_row, lancet::Read<lancet::Index> query_place, lancet::Read<T> grad_out,        \
      lancet::Read<lancet::SoftmaxSum<lancet::Wide<T>>> softmax, lancet::Write<T> grad_query,                          \
      lancet::Write<lancet::Wide<T>> means, lancet::Index queries, lancet::Index head_stride, lancet::Index window,    \
      int heads, int kv_heads, int dim, double scale, double cap) {                                                    \
    const lancet::KeysOfRows<T> keys = {key,     value,       pool_key, pool_value, token_bounds, earlier_bounds,      \
                                        earlier, head_stride, kv_heads, dim};                                          \
    lancet::query_gradient(query, keys, query_row, query_place, grad_out, softmax, grad_query, means, queries,         \
                           lancet::attention_rule<T>(window, heads, scale, cap));                                      \
  }                                                                                                                    \
  LANCET_KERNEL lancet_ragged_key_gradient_##NAME(                                                                     \
      lancet::Read<T> query, lancet::Read<T> key, lancet::Read<T> value, lancet::Read<lancet::Index> token_bounds,     \
      lancet::Read<lancet::Index> token_row, lancet::Read<lancet::Index> query_bounds,                                 \
      lancet::Read<lancet::Index> query_place, lancet::Read<T> grad_out,                                               \
      lancet::Read<lancet::SoftmaxSum<lancet::Wide<T>>> softmax, lancet::Read<lancet::Wide<T>> means,                  \
      lancet::Write<T> grad_key, lancet::Write<T> grad_value, lancet::Index tokens, lancet::Index window, int heads,   \
      int kv_heads, int dim, double scale, double cap) {                                                               \
    const lancet::QueriesOfRows<T> queries = {query,        grad_out,     softmax,     means,                          \
                                              token_bounds, query_bounds, query_place, dim};                           \
    lancet::key_gradient(key, value, queries, token_row, grad_key, grad_value, tokens, kv_heads,                       \
                         lancet::attention_rule<T>(window, heads, scale, cap));                                        \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_loss_##NAME(lancet::Read<T> logits, lancet::Read<lancet::Index> ids,                        \
                                       lancet::Write<lancet::Wide<T>> loss, lancet::Write<lancet::Wide<T>> greatest,   \
                                       lancet::Write<lancet::Wide<T>> log_sum, lancet::Index rows,                     \
                                       lancet::Index width) {                                                          \
    lancet::loss_rows(logits, ids, loss, greatest, log_sum, rows, width);                                              \
  }                                                                                                                    \
  LANCET_ROW_KERNEL lancet_loss_gradient_##NAME(                                                                       \
      lancet::Read<T> logits, lancet::Read<lancet::Index> ids, lancet::Read<lancet::Wide<T>> greatest,                 \
      lancet::Read<lancet::Wide<T>> log_sum, lancet::Read<lancet::Wide<T>> grad_loss, lancet::Write<T> grad_logits,    \
      lancet::Index rows, lancet::Index width) {                                                                       \
    lancet::loss_gradient_rows(logits, ids, greatest, log_sum, grad_loss, grad_logits, rows, width);                   \
  }
#define LANCET_KERNELS_OF(NAME, T) LANCET_KERNELS(NAME, T)
#ifdef LANCET_KERNEL_TYPE  // NVRTC compiles one type at a time: the others may never be used
LANCET_KERNELS_OF(LANCET_KERNEL_NAME, LANCET_KERNEL_TYPE)
#endif
