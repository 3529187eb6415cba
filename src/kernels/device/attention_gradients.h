// Gradients of attention_rows.h: of queries, a warp a query's head, and of keys and values, a warp a token's head of
// keys.
#pragma once

#include "attention_rows.h"

namespace lancet {

template <bool kHasPacks, typename T>
__device__ inline void query_gradient_by(const T* query, const KeysOfRows<T>& keys, const Index* query_row,
                                         const Index* query_place, const T* grad_out,
                                         const SoftmaxSum<Wide<T>>* softmax, T* grad_query, Wide<T>* means,
                                         Index queries, ScoreRule<Wide<T>> rule) {
  constexpr int kCount = at_once<T, kHasPacks>();
  const auto lanes = vector_lanes<T, kHasPacks>(keys.dim);
  const int group = rule.heads / keys.kv_heads;
  for (Index item = first_item(); item < queries * rule.heads; item += next_items()) {
    const int m = static_cast<int>(item) / rule.heads, head = static_cast<int>(item) % rule.heads;
    const SeenKeys<T> seen = seen_keys(keys, query_row[m], query_place[m], head / group, rule.window);
    const Wide<T> greatest = softmax[item].greatest, inverse = 1 / softmax[item].sum;
    typename VectorLanes<T, kHasPacks>::Part q, grad, k[kCount], v[kCount], of_weights = {}, of_mean = {};
    lanes.load(query + item * keys.dim, q);
    lanes.load(grad_out + item * keys.dim, grad);
    Wide<T> mean = 0;
    for (int base = seen.first; seen.has(base); base += kCount * lanes.groups()) {
      const int begin = base + lanes.group;
      seen.load(lanes, begin, k, v);
      Wide<T> products[2 * kCount];
      LANCET_UNROLL for (int i = 0; i < kCount; ++i) {
        products[2 * i] = lanes.part_of_product(q, k[i]);
        products[2 * i + 1] = lanes.part_of_product(grad, v[i]);
      }
      lanes.over_lanes(products);
      LANCET_UNROLL for (int i = 0; i < kCount; ++i) {
        const Wide<T> score = rule.score(products[2 * i]), grad_weight = products[2 * i + 1];
        const Wide<T> p = rule.slope(score);
        const Wide<T> weight =
            seen.has(begin + i * lanes.groups()) ? attention_weight(score, greatest, inverse) : Wide<T>(0);
        mean += weight * grad_weight;
        add_scaled(of_weights, p * product_gradient(weight, grad_weight, Wide<T>(0), rule.scale), k[i]);
        add_scaled(of_mean, p * product_gradient(weight, Wide<T>(1), Wide<T>(0), rule.scale), k[i]);
      }
    }
    mean = lanes.over_groups(mean);
    lanes.over_groups(of_weights);
    lanes.over_groups(of_mean);
    add_scaled(of_weights, -mean, of_mean);
    if (lanes.group == 0) lanes.store(of_weights, grad_query + item * keys.dim);
    if (lanes.group == 0 && lanes.lane == 0) means[item] = mean;
  }
}

/// The gradient of queries, and each one's mean of its weights' gradients, by weight [M, H]. With p = d score / d
/// product: d q = sum of p w (d w - mean) k, the mean known at the end only, so that both terms have sums of their own.
template <typename T>
__device__ inline void query_gradient(const T* query, const KeysOfRows<T>& keys, const Index* query_row,
                                      const Index* query_place, const T* grad_out, const SoftmaxSum<Wide<T>>* softmax,
                                      T* grad_query, Wide<T>* means, Index queries, ScoreRule<Wide<T>> rule) {
  if (keys.has_packs() && is_aligned(query, grad_out, grad_query)) {
    query_gradient_by<true>(query, keys, query_row, query_place, grad_out, softmax, grad_query, means, queries, rule);
  } else {
    query_gradient_by<false>(query, keys, query_row, query_place, grad_out, softmax, grad_query, means, queries, rule);
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

template <bool kHasPacks, typename T>
__device__ inline void key_gradient_by(const T* key, const T* value, const QueriesOfRows<T>& queries,
                                       const Index* token_row, T* grad_key, T* grad_value, Index tokens, int kv_heads,
                                       ScoreRule<Wide<T>> rule) {
  constexpr int kCount = at_once<T, kHasPacks>();
  const int dim = queries.dim, group = rule.heads / kv_heads;
  const auto lanes = vector_lanes<T, kHasPacks>(dim);
  for (Index item = first_item(); item < tokens * kv_heads; item += next_items()) {
    const int token = static_cast<int>(item) / kv_heads, head = static_cast<int>(item) % kv_heads;
    const Index row = token_row[token];
    const Index place = token - queries.token_bounds[row], end = queries.query_bounds[row + 1];
    Index begin = queries.query_bounds[row];
    while (begin < end && queries.query_place[begin] < place) ++begin;  // those see only tokens before
    typename VectorLanes<T, kHasPacks>::Part k, v, q[kCount], grad[kCount], grad_k = {}, grad_v = {};
    lanes.load(key + item * dim, k);
    lanes.load(value + item * dim, v);
    const int seeing = static_cast<int>(end - begin) * group;  // queries' heads
    for (int base = 0; base < seeing; base += kCount * lanes.groups()) {
      Index at[kCount];
      bool sees[kCount];
      Wide<T> products[2 * kCount];
      LANCET_UNROLL for (int j = 0; j < kCount; ++j) {
        const int i = base + j * lanes.groups() + lanes.group;
        sees[j] = i < seeing;
        const Index m = begin + (sees[j] ? i / group : 0);
        at[j] = m * rule.heads + head * group + (sees[j] ? i % group : 0);
        sees[j] = sees[j] && (rule.window == 0 || queries.query_place[m] - place < rule.window);
        lanes.load_repeated(queries.query + at[j] * dim, q[j]);
        lanes.load_repeated(queries.grad_out + at[j] * dim, grad[j]);
      }
      LANCET_UNROLL for (int j = 0; j < kCount; ++j) {
        products[2 * j] = lanes.part_of_product(q[j], k);
        products[2 * j + 1] = lanes.part_of_product(grad[j], v);
      }
      lanes.over_lanes(products);
      LANCET_UNROLL for (int j = 0; j < kCount; ++j) {
        const Wide<T> score = rule.score(products[2 * j]), grad_weight = products[2 * j + 1];
        const SoftmaxSum<Wide<T>> softmax = queries.softmax[at[j]];
        const Wide<T> weight = sees[j] ? attention_weight(score, softmax.greatest, 1 / softmax.sum) : Wide<T>(0);
        add_scaled(grad_v, weight, grad[j]);
        add_scaled(grad_k, rule.slope(score) * product_gradient(weight, grad_weight, queries.means[at[j]], rule.scale),
                   q[j]);
      }
    }
    lanes.over_groups(grad_k);
    lanes.over_groups(grad_v);
    if (lanes.group == 0) lanes.store(grad_k, grad_key + item * dim);
    if (lanes.group == 0) lanes.store(grad_v, grad_value + item * dim);
  }
}

/// The gradients of own tokens' keys and values [N, K, C]: sums over the queries that see them, of the heads that share
/// them.
template <typename T>
__device__ inline void key_gradient(const T* key, const T* value, const QueriesOfRows<T>& queries,
                                    const Index* token_row, T* grad_key, T* grad_value, Index tokens, int kv_heads,
                                    ScoreRule<Wide<T>> rule) {
  if (is_whole<T>(queries.dim) && is_aligned(key, value, queries.query, queries.grad_out, grad_key, grad_value)) {
    key_gradient_by<true>(key, value, queries, token_row, grad_key, grad_value, tokens, kv_heads, rule);
  } else {
    key_gradient_by<false>(key, value, queries, token_row, grad_key, grad_value, tokens, kv_heads, rule);
  }
}

}  // namespace lancet
