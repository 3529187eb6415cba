// Attention of ragged rows on a GPU: see ragged_attention.h. A warp takes a query's head, or, for the gradients of keys
// and values, a token's head of keys. Its lanes form groups, each of which takes a vector at a time.
#pragma once

#include "threads.h"

namespace lancet {

/// A lane's part of vectors of `dim` numbers, at most 256: a pack of neighbours, and so again after the group's others.
template <typename T>
struct VectorLanes {
  static constexpr int kPack = Pack<T>::kSize, kNumbers = 8, kPacks = kNumbers / kPack;
  typedef Wide<T> Part[kNumbers];

  int dim;
  int size;   ///< lanes of a group: a power of two
  int lane;   ///< place in its group
  int group;  ///< its group's place in the warp
  bool has_packs;

  __device__ inline int groups() const { return kWarp / size; }

  /// Zero beyond the vector.
  __device__ inline void load(const T* x, Part& to) const {
    LANCET_UNROLL for (int p = 0; p < kPacks; ++p) {
      const int begin = (p * size + lane) * kPack;
      if (has_packs && begin < dim) {
        const Pack<T> pack = Pack<T>::from(x + begin);
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) to[p * kPack + i] = wide(pack.numbers[i]);
      } else {
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) to[p * kPack + i] =
            begin + i < dim ? wide(x[begin + i]) : Wide<T>(0);
      }
    }
  }

  __device__ inline void store(const Part& x, T* to) const {
    LANCET_UNROLL for (int p = 0; p < kPacks; ++p) {
      const int begin = (p * size + lane) * kPack;
      if (has_packs && begin < dim) {
        Pack<T> pack;
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) pack.numbers[i] = narrow<T>(x[p * kPack + i]);
        pack.to(to + begin);
      } else {
        LANCET_UNROLL for (int i = 0; i < kPack; ++i) if (begin + i < dim) to[begin + i] = narrow<T>(x[p * kPack + i]);
      }
    }
  }

  /// Takes the product of two vectors; the group's lanes all get it.
  __device__ inline Wide<T> product(const Part& a, const Part& b) const {
    Wide<T> sum = 0;
    LANCET_UNROLL for (int i = 0; i < kNumbers; ++i) sum += a[i] * b[i];
    for (int other = size / 2; other > 0; other /= 2) sum += from_lane(sum, other);
    return sum;
  }

  /// Adds up what the groups have; all lanes get the sum.
  __device__ inline Wide<T> over_groups(Wide<T> x) const {
    for (int other = size; other < kWarp; other *= 2) x += from_lane(x, other);
    return x;
  }
  __device__ inline void over_groups(Part& x) const {
    LANCET_UNROLL for (int i = 0; i < kNumbers; ++i) x[i] = over_groups(x[i]);
  }
};

template <typename W>
__device__ inline void add_scaled(W (&to)[8], W scale, const W (&x)[8]) {
  LANCET_UNROLL for (int i = 0; i < 8; ++i) to[i] += scale * x[i];
}

template <typename T>
__device__ inline VectorLanes<T> vector_lanes(int dim, bool has_packs) {
  int size = 1;
  while (size < kWarp && size * Pack<T>::kSize < dim) size *= 2;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return {dim, size, lane % size, lane / size, has_packs && dim % Pack<T>::kSize == 0};
}

/// A warp's place among all of the launch.
__device__ inline Index first_item() {
  return first_row() * (next_numbers() / kWarp) + static_cast<Index>(threadIdx.x) / kWarp;
}
__device__ inline Index next_items() { return next_rows() * (next_numbers() / kWarp); }

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
  Index head_stride;  ///< from one head's pool to the next one's
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
  Index step;  ///< from one own token's vector to the next one's
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

/// Of queries [M, H, C]: attention, and what softmax is made of [M, H].
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

/// The gradient of queries, and each one's mean of its weights' gradients, by weight [M, H]. With p = d score / d
/// product: d q = sum of p w (d w - mean) k, the mean known at the end only, so that both terms have sums of their own.
template <typename T>
__device__ inline void query_gradient(const T* query, const KeysOfRows<T>& keys, const Index* query_row,
                                      const Index* query_place, const T* grad_out, const SoftmaxSum<Wide<T>>* softmax,
                                      T* grad_query, Wide<T>* means, Index queries, ScoreRule<Wide<T>> rule) {
  const VectorLanes<T> lanes = vector_lanes<T>(
      keys.dim, keys.has_packs() && is_aligned(query) && is_aligned(grad_out) && is_aligned(grad_query));
  const int group = rule.heads / keys.kv_heads;
  for (Index item = first_item(); item < queries * rule.heads; item += next_items()) {
    const Index m = item / rule.heads, head = item % rule.heads;
    const SeenKeys<T> seen = seen_keys(keys, query_row[m], query_place[m], head / group, rule.window);
    typename VectorLanes<T>::Part q, grad, k, v, of_weights = {}, of_mean = {};
    lanes.load(query + item * keys.dim, q);
    lanes.load(grad_out + item * keys.dim, grad);
    Wide<T> mean = 0;
    for (Index base = seen.first; base <= seen.last; base += lanes.groups()) {
      const Index s = base + lanes.group, at = s <= seen.last ? s : seen.last;
      lanes.load(seen.key_at(at), k);
      lanes.load(seen.value_at(at), v);
      const Wide<T> score = rule.score(lanes.product(q, k)), grad_weight = lanes.product(grad, v);
      if (s > seen.last) continue;
      const Wide<T> weight = attention_weight(score, softmax[item]), p = rule.slope(score);
      mean += weight * grad_weight;
      add_scaled(of_weights, p * product_gradient(weight, grad_weight, Wide<T>(0), rule.scale), k);
      add_scaled(of_mean, p * product_gradient(weight, Wide<T>(1), Wide<T>(0), rule.scale), k);
    }
    mean = lanes.over_groups(mean);
    lanes.over_groups(of_weights);
    lanes.over_groups(of_mean);
    add_scaled(of_weights, -mean, of_mean);
    if (lanes.group == 0) lanes.store(of_weights, grad_query + item * keys.dim);
    if (lanes.group == 0 && lanes.lane == 0) means[item] = mean;
  }
}

/// Queries [M, H, C] of rows, and what their gradients need.
template <typename T>
struct QueriesOfRows {
  const T* query;
  const T* grad_out;
  const SoftmaxSum<Wide<T>>* softmax;
  const Wide<T>* means;
  const Index* token_bounds;
  const Index* query_bounds;
  const Index* query_place;
  int dim;
};

/// The gradients of own tokens' keys and values [N, K, C]: sums over the queries that see them, of the heads that share
/// them.
template <typename T>
__device__ inline void key_gradient(const T* key, const T* value, const QueriesOfRows<T>& queries,
                                    const Index* token_row, T* grad_key, T* grad_value, Index tokens, int kv_heads,
                                    ScoreRule<Wide<T>> rule) {
  const int dim = queries.dim, group = rule.heads / kv_heads;
  const VectorLanes<T> lanes =
      vector_lanes<T>(dim, is_aligned(key) && is_aligned(value) && is_aligned(queries.query) &&
                               is_aligned(queries.grad_out) && is_aligned(grad_key) && is_aligned(grad_value));
  for (Index item = first_item(); item < tokens * kv_heads; item += next_items()) {
    const Index token = item / kv_heads, head = item % kv_heads, row = token_row[token];
    const Index place = token - queries.token_bounds[row], end = queries.query_bounds[row + 1];
    Index begin = queries.query_bounds[row];
    while (begin < end && queries.query_place[begin] < place) ++begin;  // those see only tokens before
    typename VectorLanes<T>::Part k, v, q, grad, grad_k = {}, grad_v = {};
    lanes.load(key + item * dim, k);
    lanes.load(value + item * dim, v);
    for (Index base = 0; base < (end - begin) * group; base += lanes.groups()) {
      const Index i = base + lanes.group;
      bool sees = i < (end - begin) * group;
      const Index m = sees ? begin + i / group : begin;
      const Index at = m * rule.heads + head * group + (sees ? i % group : 0);
      sees = sees && (rule.window == 0 || queries.query_place[m] - place < rule.window);
      lanes.load(queries.query + at * dim, q);
      lanes.load(queries.grad_out + at * dim, grad);
      const Wide<T> score = rule.score(lanes.product(q, k)), grad_weight = lanes.product(grad, v);
      if (!sees) continue;
      const Wide<T> weight = attention_weight(score, queries.softmax[at]);
      add_scaled(grad_v, weight, grad);
      add_scaled(grad_k, rule.slope(score) * product_gradient(weight, grad_weight, queries.means[at], rule.scale), q);
    }
    lanes.over_groups(grad_k);
    lanes.over_groups(grad_v);
    if (lanes.group == 0) lanes.store(grad_k, grad_key + item * dim);
    if (lanes.group == 0) lanes.store(grad_v, grad_value + item * dim);
  }
}

}  // namespace lancet
