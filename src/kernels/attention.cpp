#include "lancet/kernels/attention.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <limits>

#include "attention_loops.h"
#include "host_dispatch.h"
#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

/// Most queries for which the host runs loops of our own. Its flash attention calls the matrix library for every block,
/// which with bf16 sets up each product anew: seven tenths of a value step went there (docs/benchmarks.md).
constexpr int64_t kFewQueries = 32;

template <typename T>
AttentionInput<T> attention_input(const tensor_list& tensors) {
  const auto data = [&](size_t i) { return tensors[i].defined() ? tensors[i].const_data_ptr<T>() : nullptr; };
  return {data(0), data(1), data(2), data(3), data(4), tensors[5].const_data_ptr<bool>()};
}

/// Whether positions [B, K, P, C] of a head lie one after the other, and heads at equal distances.
bool has_even_heads(const Tensor& prefix_BKPC) {
  return prefix_BKPC.stride(3) == 1 && prefix_BKPC.stride(2) == prefix_BKPC.size(3) &&
         prefix_BKPC.stride(0) == prefix_BKPC.size(1) * prefix_BKPC.stride(1);
}

/// Returns the distance of one head's prefix from the next one's, in elements; of a contiguous one without regard to
/// the strides of sizes 1.
int64_t head_stride(const Tensor& prefix_BKPC) {
  return has_even_heads(prefix_BKPC) ? prefix_BKPC.stride(1) : prefix_BKPC.size(2) * prefix_BKPC.size(3);
}

AttentionShape attention_shape(const tensor_list& tensors, double scale) {
  const Tensor &query = tensors[0], &key = tensors[1], &prefix = tensors[3];
  return {.queries = query.size(1),
          .heads = query.size(2),
          .kv_heads = key.size(2),
          .dim = query.size(3),
          .prefix = prefix.defined() ? prefix.size(2) : 0,
          .prefix_stride = prefix.defined() ? head_stride(prefix) : 0,
          .fresh = key.size(1),
          .scale = scale};
}

/// Tensors in order: query, fresh key, fresh value, prefix key, prefix value, mask, [weights].
struct FewQueriesAttention : Function<FewQueriesAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const KeyValuePair& prefix, const Tensor& mask, double scale) {
    const auto whole = [](const Tensor& x) { return x.defined() ? x.contiguous() : x; };
    const bool in_place = prefix.key.defined() && has_even_heads(prefix.key) && has_even_heads(prefix.value) &&
                          prefix.key.stride(1) == prefix.value.stride(1);
    const auto earlier = [&](const Tensor& x) { return in_place ? x : whole(x); };
    tensor_list tensors{whole(query),          whole(key), whole(value), earlier(prefix.key),
                        earlier(prefix.value), whole(mask)};
    const AttentionShape shape = attention_shape(tensors, scale);
    const int64_t n_rows = query.size(0);
    Tensor out = at::empty(query.sizes(), query.options());
    const Tensor weights =
        at::empty({n_rows, shape.heads, shape.queries, shape.keys()}, query.options().dtype(precise_type(query)));
    for_host_type(query, [&]<typename T>(T) {
      const AttentionInput<T> in = attention_input<T>(tensors);
      T* to = out.mutable_data_ptr<T>();
      Wide<T>* w = weights.mutable_data_ptr<Wide<T>>();
      parallel_rows(n_rows, shape.heads * shape.queries * shape.keys() * shape.dim,
                    [&](RowRange range) { attention_forward(shape, in, to, w, range); });
    });
    tensors.push_back(weights);
    context->save_for_backward(std::move(tensors));
    context->saved_data["scale"] = scale;
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list tensors = context->get_saved_variables();
    const AttentionShape shape = attention_shape(tensors, context->saved_data["scale"].toDouble());
    const Tensor grad_out = grads[0].contiguous();
    Tensor grad_query = at::empty_like(tensors[0]);
    Tensor grad_key = at::empty_like(tensors[1]), grad_value = at::empty_like(tensors[2]);
    for_host_type(grad_out, [&]<typename T>(T) {
      const AttentionInput<T> in = attention_input<T>(tensors);
      const Wide<T>* weights = tensors[6].const_data_ptr<Wide<T>>();
      const T* from = grad_out.const_data_ptr<T>();
      const AttentionGradients<T> to{grad_query.mutable_data_ptr<T>(), grad_key.mutable_data_ptr<T>(),
                                     grad_value.mutable_data_ptr<T>()};
      parallel_rows(grad_out.size(0), 3 * shape.heads * shape.queries * shape.keys() * shape.dim,
                    [&](RowRange range) { attention_backward(shape, in, weights, from, to, range); });
    });
    return {grad_query, grad_key, grad_value, Tensor(), Tensor(), Tensor()};
  }
};

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

/// Computes attention with capped scores, which no fused kernel knows; scores and weights in at least f32.
Tensor capped_attention(const Tensor& query_BHQC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                        const Tensor& mask_B1QS, AttentionRule rule) {
  const int64_t kv_heads = key_BKSC.size(1), n_queries = query_BHQC.size(2), n_keys = key_BKSC.size(2);
  const at::ScalarType precise = precise_type(query_BHQC);
  const Tensor stacked = query_BHQC.unflatten(1, {kv_heads, -1});  // [B, K, group, Q, C]
  const Tensor scores =
      torch::matmul(stacked.to(precise) * rule.scale, key_BKSC.to(precise).unsqueeze(2).transpose(-1, -2));
  const Tensor mask =
      mask_B1QS.defined() ? mask_B1QS.unsqueeze(2) : torch::ones({n_queries, n_keys}, mask_options(query_BHQC)).tril();
  const Tensor capped = (torch::tanh(scores / rule.cap) * rule.cap)
                            .masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  return torch::matmul(capped.softmax(-1).to(value_BKSC.scalar_type()), value_BKSC.unsqueeze(2)).flatten(1, 2);
}

}  // namespace

bool has_attention_loops(const Tensor& query_BQHC) {
  return has_host_loops(query_BQHC) && query_BQHC.size(1) <= kFewQueries;
}

Tensor grouped_attention(const Tensor& query_BQHC, const KeyValuePair& fresh_BTKC, const KeyValuePair& prefix_BKPC,
                         const Tensor& mask_B1QS, AttentionRule rule) {
  if (rule.cap == 0 && mask_B1QS.defined() && has_attention_loops(query_BQHC))
    return FewQueriesAttention::apply(query_BQHC, fresh_BTKC.key, fresh_BTKC.value, prefix_BKPC, mask_B1QS, rule.scale)
        .flatten(2);
  const Tensor query_BHQC = query_BQHC.transpose(1, 2);
  const Tensor key_BKSC = with_prefix(prefix_BKPC.key, fresh_BTKC.key);
  const Tensor value_BKSC = with_prefix(prefix_BKPC.value, fresh_BTKC.value);
  const Tensor attended_BHQC = rule.cap > 0 ? capped_attention(query_BHQC, key_BKSC, value_BKSC, mask_B1QS, rule)
                                            : fused_attention(query_BHQC, key_BKSC, value_BKSC, mask_B1QS, rule.scale);
  return attended_BHQC.transpose(1, 2).flatten(2);
}

}  // namespace lancet
