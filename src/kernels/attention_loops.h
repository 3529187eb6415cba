// The loops behind grouped_attention for few queries, over rows (sequences) [begin, end). The arithmetic of bf16 is in
// f32, rounded once per result. Compiled for several instruction sets.
#pragma once

#include <cstdint>

#include "host_loops.h"

namespace lancet {

struct AttentionShape {
  int64_t queries;        ///< Q
  int64_t heads;          ///< H
  int64_t kv_heads;       ///< K
  int64_t dim;            ///< C
  int64_t prefix;         ///< P
  int64_t prefix_stride;  ///< elements from one head's prefix to the next one's: P C, or more
  int64_t fresh;          ///< T
  double scale;           ///< factor of the scores

  int64_t keys() const { return prefix + fresh; }
  int64_t group() const { return heads / kv_heads; }
};

template <typename T>
struct AttentionInput {
  const T* query;         ///< [B, Q, H, C]
  const T* key;           ///< [B, T, K, C]
  const T* value;         ///< [B, T, K, C]
  const T* prefix_key;    ///< [B, K, P, C]
  const T* prefix_value;  ///< [B, K, P, C]
  const bool* mask;       ///< [B, Q, P + T]: true: may attend
};

template <typename T>
struct AttentionGradients {
  T* query;
  T* key;
  T* value;
};

#define LANCET_ATTENTION_LOOPS(T)                                                                            \
  /* out [B, Q, H, C]; weights [B, H, Q, P + T]: the softmax, zero where masked */                           \
  void attention_forward(const AttentionShape& shape, const AttentionInput<T>& in, T* out, Wide<T>* weights, \
                         RowRange range);                                                                    \
  void attention_backward(const AttentionShape& shape, const AttentionInput<T>& in, const Wide<T>* weights,  \
                          const T* grad_out, AttentionGradients<T> gradients, RowRange range);
LANCET_ATTENTION_LOOPS(float)
LANCET_ATTENTION_LOOPS(double)
LANCET_ATTENTION_LOOPS(c10::BFloat16)
#undef LANCET_ATTENTION_LOOPS

}  // namespace lancet
