#include "host_attention.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>

#include "attention_loops.h"
#include "host_dispatch.h"
#include "lancet/kernels/decoder_ops.h"
#include "whole_heads.h"

namespace lancet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

/// Places of the tensors that are kept.
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

/// The tensors as the loops take them.
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
  /// Number of products of a pair (row, head of keys), about.
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

}  // namespace lancet
