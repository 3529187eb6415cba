#include "lancet/kernels/attention.h"

#include <ATen/ops/_flash_attention_forward.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "attention_loops.h"
#include "host_attention.h"
#include "host_dispatch.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/decoder_ops.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/send.h"
#include "whole_heads.h"

namespace lancet {
namespace {

/// The host runs our own loops for at most so many queries. Torch's flash attention calls the matrix library for every
/// block of keys, and each such call in bf16 prepares its product anew: this took seven tenths of a value step
/// (docs/benchmarks.md).
constexpr int64_t kFewQueries = 32;

/// Attention by the loops, for rows of queries [B, Q, H, C], fresh keys [B, T, K, C] and earlier keys [B, K, P, C].
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

/// Torch's own attention. Returns [B, H, Q, C].
Tensor fused_attention(const Tensor& query_BHQC, const Tensor& key_BKSC, const Tensor& value_BKSC,
                       const Tensor& mask_B1QS, double scale) {
  const int64_t group = query_BHQC.size(1) / key_BKSC.size(1);
  if (!mask_B1QS.defined()) {
    const auto spread = [&](const Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
    return at::scaled_dot_product_attention(query_BHQC, spread(key_BKSC), spread(value_BKSC), {}, 0.0,
                                            /*is_causal=*/true, scale);
  }
  // The heads of a group are treated as more queries of one head, so that keys and values need not be copied.
  const int64_t n_queries = query_BHQC.size(2);
  const Tensor stacked = query_BHQC.unflatten(1, {-1, group}).flatten(2, 3);
  const Tensor mask = group == 1 ? mask_B1QS : mask_B1QS.repeat({1, 1, group, 1});
  return at::scaled_dot_product_attention(stacked, key_BKSC, value_BKSC, mask, 0.0, /*is_causal=*/false, scale)
      .unflatten(2, {group, n_queries})
      .flatten(1, 2);
}

at::TensorOptions mask_options(const Tensor& x) { return x.options().dtype(at::kBool); }

/// Turns scores [B, K, group, Q, S] into weights: applies the cap, the mask, the sinks and softmax.
Tensor bent_weights(const Tensor& scores, const Tensor& mask, AttentionRule rule) {
  const Tensor capped = rule.cap > 0 ? torch::tanh(scores / rule.cap) * rule.cap : scores;
  const Tensor seen = capped.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  if (!rule.sinks_H.defined()) return seen.softmax(-1);
  const Tensor sink = rule.sinks_H.to(scores.scalar_type()).view({1, scores.size(1), scores.size(2), 1, 1});
  const Tensor with_sink = torch::cat({seen, sink.expand({scores.size(0), -1, -1, scores.size(3), 1})}, -1);
  return with_sink.softmax(-1).narrow(-1, 0, scores.size(4));
}

/// Computes attention by rules that no fused kernel implements; scores and weights are at least f32.
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

namespace {

/// Limits of the kernel itself (FlashAttention-2 in torch 2.11).
constexpr int64_t kLeastCapability = 80, kMostHeadDim = 256, kHeadDimStep = 8;

/// The kernel requires that the elements of a head are contiguous.
Tensor with_dense_channels(const Tensor& x_PHC) { return x_PHC.stride(2) == 1 ? x_PHC : x_PHC.contiguous(); }

}  // namespace

DocumentBounds document_bounds(std::span<const int64_t> lengths, at::Device device) {
  const auto n = static_cast<int64_t>(lengths.size());
  Tensor bounds = torch::zeros({n + 1}, torch::kInt);
  auto* numbers = bounds.mutable_data_ptr<int32_t>();
  int64_t end = 0, most = 0;
  for (int64_t i = 0; i < n; ++i) {
    end += lengths[static_cast<size_t>(i)];
    most = std::max(most, lengths[static_cast<size_t>(i)]);
    if (end > std::numeric_limits<int32_t>::max())
      throw std::logic_error(cat("packed documents: more than ", std::numeric_limits<int32_t>::max(), " places"));
    numbers[i + 1] = static_cast<int32_t>(end);
  }
  return {sent_to(device, bounds), most};
}

bool fits_varlen_kernel(const VarlenCase& attention) {
  const bool has_type = attention.type == at::kBFloat16 || attention.type == at::kHalf;
  const bool has_heads = attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0 &&
                         attention.head_dim <= kMostHeadDim && attention.head_dim % kHeadDimStep == 0;
  // The kernel's causal mask aligns a document's last query with its last key, which is right where all tokens are
  // queries. Torch uses another kernel where every document has one token.
  const bool has_queries = attention.every_query && attention.most_tokens > 1;
  if (attention.bends_scores || !attention.sees_all_before) return false;
  return attention.capability >= kLeastCapability && has_type && has_heads && has_queries && !attention.needs_gradients;
}

VarlenCase varlen_case(const Tensor& query, const Tensor& key, const Tensor& value, const DocumentBounds& documents) {
  const bool has_gradients = query.requires_grad() || key.requires_grad() || value.requires_grad();
  return {.type = query.scalar_type(),
          .capability = compute_capability(query.device()),
          .heads = query.size(-2),
          .kv_heads = key.size(-2),
          .head_dim = query.size(-1),
          .most_tokens = documents.most_tokens,
          .every_query = true,
          .needs_gradients = torch::GradMode::is_enabled() && has_gradients,
          .sees_all_before = true,
          .bends_scores = false};
}

Tensor varlen_attention(const Tensor& query_PHC, const Tensor& key_PKC, const Tensor& value_PKC,
                        const DocumentBounds& documents, double scale) {
  return std::get<0>(at::_flash_attention_forward(
      with_dense_channels(query_PHC), with_dense_channels(key_PKC), with_dense_channels(value_PKC), documents.bounds,
      documents.bounds, documents.most_tokens, documents.most_tokens, /*dropout_p=*/0.0, /*is_causal=*/true,
      /*return_debug_mask=*/false, scale));
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

/// Indices of the tensors that are saved for the backward pass.
enum Kept : size_t {
  kQuery,
  kKey,
  kValue,
  kPoolKey,
  kPoolValue,
  kQueryBounds,
  kTokenBounds,
  kEarlierBounds,
  kEarlierPlaces,
  kQueryPlaces,
  kMask,
  kSink,
  kWeights
};

template <typename T>
const T* numbers_of(const Tensor& x) {
  return x.defined() ? x.const_data_ptr<T>() : nullptr;
}

/// The tensors in the form that the loops read.
class LoopInputs {
 public:
  LoopInputs(const tensor_list& kept, AttentionRule rule, int64_t window, int64_t row_stride)
      : kept_(kept), row_stride_(row_stride) {
    const Tensor &query = kept[kQuery], &key = kept[kKey];
    shape = {query.size(1), key.size(1), query.size(2), rule.scale, rule.cap};
    rows = {kept[kQueryBounds].size(0) - 1,
            numbers_of<int64_t>(kept[kQueryBounds]),
            numbers_of<int64_t>(kept[kTokenBounds]),
            numbers_of<int64_t>(kept[kEarlierBounds]),
            numbers_of<int64_t>(kept[kEarlierPlaces]),
            numbers_of<int64_t>(kept[kQueryPlaces]),
            window,
            numbers_of<bool>(kept[kMask])};
    weight_bounds.push_back(0);
    for (int64_t row = 0; row < rows.n_rows; ++row)
      weight_bounds.push_back(weight_bounds.back() + shape.kv_heads * attention_weights_of(shape, rows, row));
  }

  template <typename T>
  AttentionInput<T> of_type() const {
    const Tensor& pool = kept_[kPoolKey];
    return {numbers_of<T>(kept_[kQuery]),        numbers_of<T>(kept_[kKey]),
            numbers_of<T>(kept_[kValue]),        numbers_of<T>(pool),
            numbers_of<T>(kept_[kPoolValue]),    row_stride_,
            pool.defined() ? pool.stride(1) : 0, numbers_of<T>(kept_[kSink])};
  }

  int64_t pairs() const { return rows.n_rows * shape.kv_heads; }
  /// Approximate number of multiplications for one pair (row, head of keys).
  int64_t cost() const { return weight_bounds.back() / std::max<int64_t>(1, pairs()) * shape.dim; }

  AttentionShape shape;
  AttentionRows rows;
  std::vector<int64_t> weight_bounds;

 private:
  const tensor_list& kept_;
  int64_t row_stride_;
};

struct HostAttention : Function<HostAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const EarlierKeys& earlier, const HostRows& layout, AttentionRule rule) {
    const KeyValuePair pool = with_whole_heads(earlier.pool);
    const int64_t row_stride = pool.key.defined() && !earlier.is_shared ? pool.key.stride(0) : 0;
    tensor_list kept{query.contiguous(),
                     key.contiguous(),
                     value.contiguous(),
                     pool.key,
                     pool.value,
                     layout.query_bounds,
                     layout.token_bounds,
                     layout.earlier_bounds,
                     layout.earlier_places,
                     layout.query_places,
                     layout.mask,
                     rule.sinks_H.defined() ? rule.sinks_H.to(query.scalar_type()).contiguous() : Tensor()};
    const LoopInputs inputs(kept, rule, layout.window, row_stride);
    Tensor out = at::empty(query.sizes(), query.options());
    const Tensor weights = at::empty({inputs.weight_bounds.back()}, query.options().dtype(precise_type(query)));
    for_host_type(query, [&]<typename T>(T) {
      const AttentionInput<T> in = inputs.of_type<T>();
      T* to = out.mutable_data_ptr<T>();
      Wide<T>* w = weights.mutable_data_ptr<Wide<T>>();
      parallel_rows(inputs.pairs(), inputs.cost(), [&](RowRange range) {
        attention_forward(inputs.shape, inputs.rows, in, to, w, inputs.weight_bounds.data(), range);
      });
    });
    kept.push_back(weights);
    context->save_for_backward(std::move(kept));
    context->saved_data["scale"] = rule.scale;
    context->saved_data["cap"] = rule.cap;
    context->saved_data["window"] = layout.window;
    context->saved_data["row_stride"] = row_stride;
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list kept = context->get_saved_variables();
    auto& data = context->saved_data;
    const LoopInputs inputs(kept, {data["scale"].toDouble(), data["cap"].toDouble()}, data["window"].toInt(),
                            data["row_stride"].toInt());
    const Tensor grad_out = grads[0].contiguous();
    Tensor grad_query = at::empty_like(kept[kQuery]);
    Tensor grad_key = at::empty_like(kept[kKey]), grad_value = at::empty_like(kept[kValue]);
    for_host_type(grad_out, [&]<typename T>(T) {
      const AttentionInput<T> in = inputs.of_type<T>();
      const Wide<T>* weights = kept[kWeights].const_data_ptr<Wide<T>>();
      const T* from = grad_out.const_data_ptr<T>();
      const AttentionGradients<T> to{grad_query.mutable_data_ptr<T>(), grad_key.mutable_data_ptr<T>(),
                                     grad_value.mutable_data_ptr<T>()};
      parallel_rows(inputs.pairs(), 3 * inputs.cost(), [&](RowRange range) {
        attention_backward(inputs.shape, inputs.rows, in, weights, inputs.weight_bounds.data(), from, to, range);
      });
    });
    return {grad_query, grad_key, grad_value, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor host_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const EarlierKeys& earlier,
                      const HostRows& rows, AttentionRule rule) {
  return HostAttention::apply(query_MHC, fresh_NKC.key, fresh_NKC.value, earlier, rows, rule);
}

namespace {

bool has_whole_heads(const Tensor& x) { return x.stride(-1) == 1 && x.stride(-2) == x.size(-1); }

}  // namespace

KeyValuePair with_whole_heads(const KeyValuePair& pool) {
  if (!pool.key.defined()) return {};
  if (has_whole_heads(pool.key) && has_whole_heads(pool.value) && pool.key.strides() == pool.value.strides())
    return pool;
  return {pool.key.clone(at::MemoryFormat::Contiguous), pool.value.clone(at::MemoryFormat::Contiguous)};
}

}  // namespace lancet
