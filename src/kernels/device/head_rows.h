// Rows of heads: turned by the rotary embedding, and split into queries, keys and values where one product gave them.
#pragma once

#include "threads.h"

namespace lancet {

/// Which way numbers turn: the transpose is for gradients.
enum class Turn { kForward, kBack };

/// Turns pairs of numbers `half` apart in a head; `cos` and `sin` point to the first one's.
template <Turn kTurn, typename T, int kCount>
__device__ inline void turn_pairs(Chunk<T, kCount>& a, Chunk<T, kCount>& b, const T* cos, const T* sin, int half) {
  using Own = Chunk<T, kCount>;
  const Own cos_a = Own::from(cos), cos_b = Own::from(cos + half);
  const Own sin_a = Own::from(sin), sin_b = Own::from(sin + half);
  LANCET_UNROLL for (int j = 0; j < kCount; ++j) {
    const Wide<T> first = wide(a.numbers[j]), second = wide(b.numbers[j]);
    const Wide<T> cos_1 = wide(cos_a.numbers[j]), cos_2 = wide(cos_b.numbers[j]);
    const Wide<T> sin_1 = wide(sin_a.numbers[j]), sin_2 = wide(sin_b.numbers[j]);
    if constexpr (kTurn == Turn::kForward) {
      a.numbers[j] = turned_down<T>(first, second, cos_1, sin_1);
      b.numbers[j] = turned_up<T>(second, first, cos_2, sin_2);
    } else {
      a.numbers[j] = turned_up<T>(first, second, cos_1, sin_2);
      b.numbers[j] = turned_down<T>(second, first, cos_2, sin_1);
    }
  }
}

/// Takes `heads` vectors of `dim` a row from where `from(row, head)` says to where `to` does, the first `turned` of
/// them turned by the row's table.
template <Turn kTurn, typename T, typename From, typename To>
__device__ inline void move_heads(const From& from, const To& to, const T* cos, const T* sin, Index rows, int heads,
                                  int turned, int dim, bool has_packs) {
  const int half = dim / 2;
  for (Index row = first_row(); row < rows; row += next_rows())
    over_row<T>(heads * half, has_packs, [&](auto kind, Index pair) {
      const int head = static_cast<int>(pair) / half, i = static_cast<int>(pair) % half;
      const T* x = from(row, head) + i;
      auto a = kind.from(x), b = kind.from(x + half);
      if (head < turned) turn_pairs<kTurn>(a, b, cos + row * dim + i, sin + row * dim + i, half);
      T* y = to(row, head) + i;
      a.to(y);
      b.to(y + half);
    });
}

/// Heads one after the other in each row.
template <typename P>
struct HeadsOfRows {
  P first;
  int heads, dim;
  __device__ inline P operator()(Index row, int head) const { return first + (row * heads + head) * dim; }
};

/// Rows of `heads` vectors of `dim`; the tables have a vector a row. `back`: 1: the transpose, for gradients.
template <typename T>
__device__ inline void rotate_rows(const T* x, const T* cos, const T* sin, T* y, Index rows, int heads, int dim,
                                   int back) {
  const bool has_packs = is_whole<T>(dim / 2) && is_aligned(x, cos, sin, y);
  const HeadsOfRows<const T*> from = {x, heads, dim};
  const HeadsOfRows<T*> to = {y, heads, dim};
  if (back == 0)
    move_heads<Turn::kForward>(from, to, cos, sin, rows, heads, heads, dim, has_packs);
  else
    move_heads<Turn::kBack>(from, to, cos, sin, rows, heads, heads, dim, has_packs);
}

/// Queries, keys and values in memory of their own.
template <typename P>
struct PartsOfHeads {
  HeadsOfRows<P> query, key, value;
  __device__ inline P operator()(Index row, int head) const {
    if (head < query.heads) return query(row, head);
    head -= query.heads;
    return head < key.heads ? key(row, head) : value(row, head - key.heads);
  }
};

/// Splits rows of queries', keys' and values' heads, as one product with their matrices gives them; queries and keys
/// are turned where there are tables.
template <typename T>
__device__ inline void split_head_rows(const T* joined, const T* cos, const T* sin, T* query, T* key, T* value,
                                       Index rows, int heads, int kv_heads, int dim) {
  const int all = heads + 2 * kv_heads, turned = cos == nullptr ? 0 : heads + kv_heads;
  const bool has_packs = is_whole<T>(dim / 2) && is_aligned(joined, cos, sin, query, key, value);
  const PartsOfHeads<T*> parts = {{query, heads, dim}, {key, kv_heads, dim}, {value, kv_heads, dim}};
  move_heads<Turn::kForward>(HeadsOfRows<const T*>{joined, all, dim}, parts, cos, sin, rows, all, turned, dim,
                             has_packs);
}

/// Joins the gradients of those.
template <typename T>
__device__ inline void join_head_rows(const T* query, const T* key, const T* value, const T* cos, const T* sin,
                                      T* joined, Index rows, int heads, int kv_heads, int dim) {
  const int all = heads + 2 * kv_heads, turned = cos == nullptr ? 0 : heads + kv_heads;
  const bool has_packs = is_whole<T>(dim / 2) && is_aligned(joined, cos, sin, query, key, value);
  const PartsOfHeads<const T*> parts = {{query, heads, dim}, {key, kv_heads, dim}, {value, kv_heads, dim}};
  move_heads<Turn::kBack>(parts, HeadsOfRows<T*>{joined, all, dim}, cos, sin, rows, all, turned, dim, has_packs);
}

}  // namespace lancet
