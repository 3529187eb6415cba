// Gradients of attention_rows.h: of queries, a warp a query's head, and of keys and values, a warp a token's head of
// keys.
#pragma once

#include "attention_rows.h"

namespace lancet {

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
