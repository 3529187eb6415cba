// The loops behind grouped_attention for few queries and behind ragged_attention: rows of queries, each with tokens of
// its own and earlier ones. The arithmetic of bf16 is in f32, rounded once per result. Compiled for several instruction
// sets.
#pragma once

#include <cstdint>

#include "host_loops.h"

namespace lancet {

struct AttentionShape {
  int64_t heads;     ///< H
  int64_t kv_heads;  ///< K
  int64_t dim;       ///< C
  double scale;      ///< factor of the scores
  double cap;        ///< see AttentionRule

  int64_t group() const { return heads / kv_heads; }
};

/// Row r has elements bounds[r]..bounds[r + 1] - 1 of each kind. A query sees the earlier tokens and the own ones up to
/// its own place, or what a mask says.
struct AttentionRows {
  int64_t n_rows;
  const int64_t* query_bounds;
  const int64_t* token_bounds;
  const int64_t* earlier_bounds;
  const int64_t* earlier_places;  ///< each earlier token's in the pool; null: a row has the places from 0 on
  const int64_t* query_places;    ///< [M] among the own tokens of its row; null with a mask
  int64_t window;                 ///< see RaggedLayout
  const bool* mask;               ///< [M, the row's earlier and own tokens]: true: may attend; null: see above

  int64_t n_queries(int64_t row) const { return query_bounds[row + 1] - query_bounds[row]; }
  int64_t n_earlier(int64_t row) const { return earlier_bounds[row + 1] - earlier_bounds[row]; }
  int64_t n_keys(int64_t row) const { return n_earlier(row) + token_bounds[row + 1] - token_bounds[row]; }
};

template <typename T>
struct AttentionInput {
  const T* query;       ///< [M, H, C]
  const T* key;         ///< [N, K, C]
  const T* value;       ///< [N, K, C]
  const T* pool_key;    ///< a key at (row, head, place): row * row_stride + head * head_stride + place * C
  const T* pool_value;  ///< likewise
  int64_t row_stride;   ///< 0: rows share the pool
  int64_t head_stride;
  const T* sinks;  ///< [H], see AttentionRule; null: none
};

template <typename T>
struct AttentionGradients {
  T* query;
  T* key;
  T* value;
};

/// The numbers of softmax weights that a row's head of keys is given.
int64_t attention_weights_of(const AttentionShape& shape, const AttentionRows& rows, int64_t row);

/// The range is of pairs (row, head of keys), row * K + head. `weights`: what goes back takes from there; the place of
/// row r's is weight_bounds[r], one head's after the other's.
#define LANCET_ATTENTION_LOOPS(T)                                                                                     \
  /* out [M, H, C] */                                                                                                 \
  void attention_forward(const AttentionShape& shape, const AttentionRows& rows, const AttentionInput<T>& in, T* out, \
                         Wide<T>* weights, const int64_t* weight_bounds, RowRange range);                             \
  void attention_backward(const AttentionShape& shape, const AttentionRows& rows, const AttentionInput<T>& in,        \
                          const Wide<T>* weights, const int64_t* weight_bounds, const T* grad_out,                    \
                          AttentionGradients<T> gradients, RowRange range);
LANCET_ATTENTION_LOOPS(float)
LANCET_ATTENTION_LOOPS(double)
LANCET_ATTENTION_LOOPS(c10::BFloat16)
#undef LANCET_ATTENTION_LOOPS

}  // namespace lancet
