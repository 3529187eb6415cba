// Attention of ragged rows on a GPU: see ragged_attention.h. A warp takes a query's head.
#pragma once

#include "vector_lanes.h"

namespace lancet {

template <typename W>
struct ScoreRule {
  Index window;  ///< 0: none
  int heads;
  W scale;
  W cap;  ///< 0: none

  __device__ inline W score(W product) const { return cap > 0 ? capped_score(scale * product, cap) : scale * product; }
  __device__ inline W slope(W score) const { return cap > 0 ? cap_slope(score, cap) : W(1); }
};

template <typename T>
__device__ inline ScoreRule<Wide<T>> attention_rule(Index window, int heads, double scale, double cap) {
  return {window, heads, static_cast<Wide<T>>(scale), static_cast<Wide<T>>(cap)};
}

/// Keys and values that rows see: [N, K, C] of their own tokens, and of earlier ones at their places in the pool.
template <typename T>
struct KeysOfRows {
  const T* key;
  const T* value;
  const T* pool_key;
  const T* pool_value;
  const Index* token_bounds;
  const Index* earlier_bounds;
  const Index* earlier;
  Index head_stride;  ///< distance of one head's pool from the next one's
  int kv_heads;
  int dim;

  __device__ inline bool has_packs() const {
    return is_aligned(key) && is_aligned(value) && is_aligned(pool_key) && is_aligned(pool_value) &&
           head_stride % Pack<T>::kSize == 0;
  }
};

/// One row's keys and values of one head, and those that a query sees: first..last, earlier ones before own ones.
template <typename T>
struct SeenKeys {
  const T* pool_key;
  const T* pool_value;
  const T* key;
  const T* value;
  const Index* earlier;
  Index n_earlier;
  Index first;
  Index last;
  Index step;  ///< distance of one own token's vector from the next one's
  int dim;

  __device__ inline const T* at(Index s, const T* pool, const T* own) const {
    return s < n_earlier ? pool + earlier[s] * dim : own + (s - n_earlier) * step;
  }
  __device__ inline const T* key_at(Index s) const { return at(s, pool_key, key); }
  __device__ inline const T* value_at(Index s) const { return at(s, pool_value, value); }
};

template <typename T>
__device__ inline SeenKeys<T> seen_keys(const KeysOfRows<T>& keys, Index row, Index place, Index head, Index window) {
  const Index begin = keys.earlier_bounds[row], n_earlier = keys.earlier_bounds[row + 1] - begin;
  const Index pool = head * keys.head_stride, own = (keys.token_bounds[row] * keys.kv_heads + head) * keys.dim;
  const Index last = n_earlier + place, first = window > 0 && last + 1 > window ? last + 1 - window : 0;
  return {keys.pool_key + pool,
          keys.pool_value + pool,
          keys.key + own,
          keys.value + own,
          keys.earlier + begin,
          n_earlier,
          first,
          last,
          static_cast<Index>(keys.kv_heads) * keys.dim,
          keys.dim};
}

/// Softmax's sum and the sum of values by weight, as far as a group of lanes has come.
template <typename T>
struct Attended {
  SoftmaxSum<Wide<T>> softmax;
  typename VectorLanes<T>::Part values;

  __device__ inline void rescale(Wide<T> greatest) {
    if (softmax.greatest == greatest) return;  // an infinity less itself is no number
    const Wide<T> factor = exponential(softmax.greatest - greatest);
    softmax = {greatest, softmax.sum * factor};
    LANCET_UNROLL for (int i = 0; i < VectorLanes<T>::kNumbers; ++i) values[i] *= factor;
  }
};

/// Computes attention of queries [M, H, C], and what softmax is made of [M, H].
template <typename T>
__device__ inline void attend(const T* query, const KeysOfRows<T>& keys, const Index* query_row,
                              const Index* query_place, T* out, SoftmaxSum<Wide<T>>* softmax, Index queries,
                              ScoreRule<Wide<T>> rule) {
  const VectorLanes<T> lanes = vector_lanes<T>(keys.dim, keys.has_packs() && is_aligned(query) && is_aligned(out));
  const int group = rule.heads / keys.kv_heads;
  for (Index item = first_item(); item < queries * rule.heads; item += next_items()) {
    const Index m = item / rule.heads, head = item % rule.heads;
    const SeenKeys<T> seen = seen_keys(keys, query_row[m], query_place[m], head / group, rule.window);
    typename VectorLanes<T>::Part q, k, v;
    lanes.load(query + item * keys.dim, q);
    Attended<T> sum = {{-static_cast<Wide<T>>(kInfinity), 0}, {}};
    for (Index base = seen.first; base <= seen.last; base += lanes.groups()) {
      const Index s = base + lanes.group, at = s <= seen.last ? s : seen.last;
      lanes.load(seen.key_at(at), k);
      lanes.load(seen.value_at(at), v);
      const Wide<T> score = rule.score(lanes.product(q, k));
      if (s > seen.last) continue;
      if (score > sum.softmax.greatest) sum.rescale(score);
      const Wide<T> weight = exponential(score - sum.softmax.greatest);
      sum.softmax.sum += weight;
      add_scaled(sum.values, weight, v);
    }
    Wide<T> greatest = sum.softmax.greatest;
    for (int other = lanes.size; other < kWarp; other *= 2) {
      const Wide<T> theirs = from_lane(greatest, other);
      greatest = theirs > greatest ? theirs : greatest;
    }
    sum.rescale(greatest);
    const Wide<T> whole = lanes.over_groups(sum.softmax.sum);
    lanes.over_groups(sum.values);
    LANCET_UNROLL for (int i = 0; i < VectorLanes<T>::kNumbers; ++i) sum.values[i] /= whole;
    if (lanes.group == 0) lanes.store(sum.values, out + item * keys.dim);
    if (lanes.group == 0 && lanes.lane == 0) softmax[item] = {greatest, whole};
  }
}

}  // namespace lancet
