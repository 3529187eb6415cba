#include "lancet/kernels/attention.h"

#include <torch/types.h>

#include <limits>

#include "host_attention.h"
#include "host_dispatch.h"
#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

/// Most queries for which the host runs loops of our own. Its flash attention calls the matrix library for every block,
/// which with bf16 sets up each product anew: seven tenths of a value step went there (docs/benchmarks.md).
constexpr int64_t kFewQueries = 32;

/// The loops' rows of queries [B, Q, H, C] for fresh keys [B, T, K, C] and earlier ones [B, K, P, C].
Tensor few_queries_attention(const Tensor& query_BQHC, const KeyValuePair& fresh_BTKC, const KeyValuePair& prefix_BKPC,
                             const Tensor& mask_B1QS, AttentionRule rule) {
  const Tensor row_R1 = at::arange(query_BQHC.size(0) + 1, at::TensorOptions(at::kLong));
  HostRows rows;
  rows.query_bounds = row_R1 * query_BQHC.size(1);
  rows.token_bounds = row_R1 * fresh_BTKC.key.size(1);
  rows.earlier_bounds = row_R1 * (prefix_BKPC.key.defined() ? prefix_BKPC.key.size(2) : 0);
  rows.mask = mask_B1QS.contiguous();
  return host_attention(query_BQHC.flatten(0, 1), {fresh_BTKC.key.flatten(0, 1), fresh_BTKC.value.flatten(0, 1)},
                        {prefix_BKPC}, rows, rule)
      .unflatten(0, {query_BQHC.size(0), query_BQHC.size(1)});
}

Tensor with_prefix(const Tensor& prefix_BKPC, const Tensor& fresh_BTKC) {
  const Tensor fresh_BKTC = fresh_BTKC.transpose(1, 2);
  if (!prefix_BKPC.defined()) return fresh_BKTC;
  return fresh_BKTC.size(2) == 0 ? prefix_BKPC : torch::cat({prefix_BKPC, fresh_BKTC}, 2);
}

/// Torch's own attention, [B, H, Q, C].
Tensor fused_attention(const Tensor& query_BHQC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                       const Tensor& mask_B1QS, double scale) {
  const int64_t group = query_BHQC.size(1) / key_BKSC.size(1);
  if (!mask_B1QS.defined()) {
    const auto spread = [&](const Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
    return at::scaled_dot_product_attention(query_BHQC, spread(key_BKSC), spread(value_BKSC), {}, 0.0,
                                            /*is_causal=*/true, scale);
  }
  // The heads of a group become more queries of one head: keys and values are not copied.
  const int64_t n_queries = query_BHQC.size(2);
  const Tensor stacked = query_BHQC.unflatten(1, {-1, group}).flatten(2, 3);
  const Tensor mask = group == 1 ? mask_B1QS : mask_B1QS.repeat({1, 1, group, 1});
  return at::scaled_dot_product_attention(stacked, key_BKSC, value_BKSC, mask, 0.0, /*is_causal=*/false, scale)
      .unflatten(2, {group, n_queries})
      .flatten(1, 2);
}

at::TensorOptions mask_options(const Tensor& x) { return x.options().dtype(at::kBool); }

/// Scores [B, K, group, Q, S], capped and hidden, become weights.
Tensor bent_weights(const Tensor& scores, const Tensor& mask, AttentionRule rule) {
  const Tensor capped = rule.cap > 0 ? torch::tanh(scores / rule.cap) * rule.cap : scores;
  const Tensor seen = capped.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  if (!rule.sinks_H.defined()) return seen.softmax(-1);
  const Tensor sink = rule.sinks_H.to(scores.scalar_type()).view({1, scores.size(1), scores.size(2), 1, 1});
  const Tensor with_sink = torch::cat({seen, sink.expand({scores.size(0), -1, -1, scores.size(3), 1})}, -1);
  return with_sink.softmax(-1).narrow(-1, 0, scores.size(4));
}

/// Computes attention that no fused kernel knows; scores and weights in at least f32.
Tensor bent_attention(const Tensor& query_BHQC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                      const Tensor& mask_B1QS, AttentionRule rule) {
  const int64_t kv_heads = key_BKSC.size(1), n_queries = query_BHQC.size(2), n_keys = key_BKSC.size(2);
  const at::ScalarType precise = precise_type(query_BHQC);
  const Tensor stacked = query_BHQC.unflatten(1, {kv_heads, -1});  // [B, K, group, Q, C]
  const Tensor scores =
      torch::matmul(stacked.to(precise) * rule.scale, key_BKSC.to(precise).unsqueeze(2).transpose(-1, -2));
  const Tensor mask =
      mask_B1QS.defined() ? mask_B1QS.unsqueeze(2) : torch::ones({n_queries, n_keys}, mask_options(query_BHQC)).tril();
  const Tensor weights = bent_weights(scores, mask, rule);
  return torch::matmul(weights.to(value_BKSC.scalar_type()), value_BKSC.unsqueeze(2)).flatten(1, 2);
}

}  // namespace

bool has_attention_loops(const Tensor& query_BQHC) {
  return has_host_loops(query_BQHC) && query_BQHC.size(1) <= kFewQueries;
}

Tensor grouped_attention(const Tensor& query_BQHC, const KeyValuePair& fresh_BTKC, const KeyValuePair& prefix_BKPC,
                         const Tensor& mask_B1QS, AttentionRule rule) {
  if (mask_B1QS.defined() && has_attention_loops(query_BQHC))
    return few_queries_attention(query_BQHC, fresh_BTKC, prefix_BKPC, mask_B1QS, rule).flatten(2);
  const Tensor query_BHQC = query_BQHC.transpose(1, 2);
  const Tensor key_BKSC = with_prefix(prefix_BKPC.key, fresh_BTKC.key);
  const Tensor value_BKSC = with_prefix(prefix_BKPC.value, fresh_BTKC.value);
  const Tensor attended_BHQC = rule.is_bent()
                                   ? bent_attention(query_BHQC, key_BKSC, value_BKSC, mask_B1QS, rule)
                                   : fused_attention(query_BHQC, key_BKSC, value_BKSC, mask_B1QS, rule.scale);
  return attended_BHQC.transpose(1, 2).flatten(2);
}

}  // namespace lancet
