// The loops behind grouped_attention for few queries and behind ragged_attention: rows of queries, each with its own
// tokens and earlier tokens. bf16 is computed in f32, and each result is rounded once. Compiled for several instruction
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

/// Row r has the elements bounds[r]..bounds[r + 1] - 1 of each kind. A query attends to the row's earlier tokens and to
/// its own tokens up to the query's position, or to those that the mask allows.
struct AttentionRows {
  int64_t n_rows;
  const int64_t* query_bounds;
  const int64_t* token_bounds;
  const int64_t* earlier_bounds;
  const int64_t* earlier_places;  ///< index of each earlier token in the pool; null: a row's earlier tokens are the
                                  ///< first ones of the pool
  const int64_t* query_places;    ///< [M] positions among the row's own tokens; null with a mask
  int64_t window;                 ///< see RaggedLayout
  const bool* mask;               ///< [M, the row's earlier and own tokens]: true: may attend; null: the rule above

  int64_t n_queries(int64_t row) const { return query_bounds[row + 1] - query_bounds[row]; }
  int64_t n_earlier(int64_t row) const { return earlier_bounds[row + 1] - earlier_bounds[row]; }
  int64_t n_keys(int64_t row) const { return n_earlier(row) + token_bounds[row + 1] - token_bounds[row]; }
};

template <typename T>
struct AttentionInput {
  const T* query;       ///< [M, H, C]
  const T* key;         ///< [N, K, C]
  const T* value;       ///< [N, K, C]
  const T* pool_key;    ///< the key of (row, head, token) is at row * row_stride + head * head_stride + token * C
  const T* pool_value;  ///< the same layout
  int64_t row_stride;   ///< 0: all rows share one pool
  int64_t head_stride;
  const T* sinks;  ///< [H], see AttentionRule; null: none
};

template <typename T>
struct AttentionGradients {
  T* query;
  T* key;
  T* value;
};

/// Returns how many softmax weights are stored for one row and head of keys.
int64_t attention_weights_of(const AttentionShape& shape, const AttentionRows& rows, int64_t row);

/// The range counts pairs (row, head of keys): row * K + head. `weights`: written by the forward pass for the backward
/// pass; those of row r begin at weight_bounds[r], one head after the other.
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
