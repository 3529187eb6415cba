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
    return is_whole<T>(dim) && is_whole<T>(head_stride) && is_aligned(key, value, pool_key, pool_value);
  }
};

/// One row's keys and values of one head, and those that a query sees: first..last, earlier ones before own ones. A
/// head's vectors are fewer than 2^31 numbers: see attention_device.cpp.
template <typename T>
struct SeenKeys {
  const T* pool_key;
  const T* pool_value;
  const T* key;
  const T* value;
  const Index* earlier;
  int n_earlier;
  int first;
  int last;
  int step;  ///< distance of one own token's vector from the next one's
  int dim;

  __device__ inline bool has(int s) const { return s <= last; }

  /// Loads some keys and values from `begin` on, a group of lanes apart; behind the last one the last again.
  template <bool kHasPacks, int kCount>
  __device__ inline void load(const VectorLanes<T, kHasPacks>& lanes, int begin,
                              typename VectorLanes<T, kHasPacks>::Part (&keys)[kCount],
                              typename VectorLanes<T, kHasPacks>::Part (&values)[kCount]) const {
    LANCET_UNROLL for (int i = 0; i < kCount; ++i) {
      const int s = has(begin + i * lanes.groups()) ? begin + i * lanes.groups() : last;
      const bool is_earlier = s < n_earlier;
      const int place = is_earlier ? static_cast<int>(earlier[s]) * dim : (s - n_earlier) * step;
      lanes.load_repeated((is_earlier ? pool_key : key) + place, keys[i]);
      lanes.load_repeated((is_earlier ? pool_value : value) + place, values[i]);
    }
  }
};

template <typename T>
__device__ inline SeenKeys<T> seen_keys(const KeysOfRows<T>& keys, Index row, Index place, int head, Index window) {
  const Index begin = keys.earlier_bounds[row], n_earlier = keys.earlier_bounds[row + 1] - begin;
  const Index pool = head * keys.head_stride, own = (keys.token_bounds[row] * keys.kv_heads + head) * keys.dim;
  const Index last = n_earlier + place, first = window > 0 && last + 1 > window ? last + 1 - window : 0;
  return {keys.pool_key + pool,     keys.pool_value + pool,
          keys.key + own,           keys.value + own,
          keys.earlier + begin,     static_cast<int>(n_earlier),
          static_cast<int>(first),  static_cast<int>(last),
          keys.kv_heads * keys.dim, keys.dim};
}

/// Softmax's sum and the sum of values by weight, as far as a group of lanes has come.
template <typename T>
struct Attended {
  SoftmaxSum<Wide<T>> softmax;
  Wide<T> values[8];

  __device__ inline void rescale(Wide<T> greatest) {
    if (softmax.greatest == greatest) return;  // an infinity less itself is no number
    const Wide<T> factor = exponential(softmax.greatest - greatest);
    softmax = {greatest, softmax.sum * factor};
    LANCET_UNROLL for (int i = 0; i < 8; ++i) values[i] *= factor;
  }
};

template <bool kHasPacks, typename T>
__device__ inline void attend_by(const T* query, const KeysOfRows<T>& keys, const Index* query_row,
                                 const Index* query_place, T* out, SoftmaxSum<Wide<T>>* softmax, Index queries,
                                 ScoreRule<Wide<T>> rule) {
  constexpr int kCount = at_once<T, kHasPacks>();
  const auto lanes = vector_lanes<T, kHasPacks>(keys.dim);
  const int group = rule.heads / keys.kv_heads;
  for (Index item = first_item(); item < queries * rule.heads; item += next_items()) {
    const int m = static_cast<int>(item) / rule.heads, head = static_cast<int>(item) % rule.heads;
    const SeenKeys<T> seen = seen_keys(keys, query_row[m], query_place[m], head / group, rule.window);
    typename VectorLanes<T, kHasPacks>::Part q, k[kCount], v[kCount];
    lanes.load(query + item * keys.dim, q);
    Attended<T> sum = {{-static_cast<Wide<T>>(kInfinity), 0}, {}};
    for (int base = seen.first; seen.has(base); base += kCount * lanes.groups()) {
      const int begin = base + lanes.group;
      seen.load(lanes, begin, k, v);
      Wide<T> scores[kCount], greatest = sum.softmax.greatest;
      LANCET_UNROLL for (int i = 0; i < kCount; ++i) scores[i] = lanes.part_of_product(q, k[i]);
      lanes.over_lanes(scores);
      LANCET_UNROLL for (int i = 0; i < kCount; ++i) {
        scores[i] = rule.score(scores[i]);
        if (seen.has(begin + i * lanes.groups()) && scores[i] > greatest) greatest = scores[i];
      }
      sum.rescale(greatest);
      LANCET_UNROLL for (int i = 0; i < kCount; ++i) {
        const Wide<T> weight = seen.has(begin + i * lanes.groups()) ? exponential(scores[i] - greatest) : Wide<T>(0);
        sum.softmax.sum += weight;
        add_scaled(sum.values, weight, v[i]);
      }
    }
    Wide<T> greatest = sum.softmax.greatest;
    for (int other = lanes.size; other < kWarp; other *= 2) {
      const Wide<T> theirs = from_lane(greatest, other);
      greatest = theirs > greatest ? theirs : greatest;
    }
    sum.rescale(greatest);
    const Wide<T> whole = lanes.over_groups(sum.softmax.sum);
    lanes.over_groups(sum.values);
    LANCET_UNROLL for (int i = 0; i < 8; ++i) sum.values[i] /= whole;
    if (lanes.group == 0) lanes.store(sum.values, out + item * keys.dim);
    if (lanes.group == 0 && lanes.lane == 0) softmax[item] = {greatest, whole};
  }
}

/// Computes attention of queries [M, H, C], and what softmax is made of [M, H].
template <typename T>
__device__ inline void attend(const T* query, const KeysOfRows<T>& keys, const Index* query_row,
                              const Index* query_place, T* out, SoftmaxSum<Wide<T>>* softmax, Index queries,
                              ScoreRule<Wide<T>> rule) {
  if (keys.has_packs() && is_aligned(query, out)) {
    attend_by<true>(query, keys, query_row, query_place, out, softmax, queries, rule);
  } else {
    attend_by<false>(query, keys, query_row, query_place, out, softmax, queries, rule);
  }
}

}  // namespace lancet
