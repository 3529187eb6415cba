// Launches the attention kernels of device/attention_rows.h for tensors, forward and backward.
#include "attention_device.h"

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "device_launch.h"
#include "lancet/kernels/decoder_ops.h"
#include "whole_heads.h"

namespace lancet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

/// Indices of the tensors that are saved for the backward pass.
enum KeptOnDevice : size_t {
  kQueries,
  kKeys,
  kValues,
  kPoolKeys,
  kPoolValues,
  kOwnBounds,
  kOwnRows,
  kPoolBounds,
  kPoolPlaces,
  kBoundsOfQueries,
  kRowsOfQueries,
  kPlacesOfQueries,
  kSoftmax
};

/// Adds each head's sink to the statistics of softmax [M, H, 2] (greatest score, sum of exponentials) and scales the
/// outputs accordingly. The backward pass computes its weights from these statistics.
void add_sinks(const Tensor& sinks_H, Tensor& out_MHC, Tensor& softmax_MH2) {
  const Tensor sinks_1H = sinks_H.to(softmax_MH2.scalar_type()).unsqueeze(0);
  const Tensor greatest_MH = softmax_MH2.select(2, 0), most_MH = at::maximum(greatest_MH, sinks_1H);
  const Tensor sum_MH = softmax_MH2.select(2, 1) * (greatest_MH - most_MH).exp();
  const Tensor whole_MH = sum_MH + (sinks_1H - most_MH).exp();
  out_MHC.mul_((sum_MH / whole_MH).unsqueeze(2));
  softmax_MH2 = torch::stack({most_MH, whole_MH}, 2);
}

/// A grid with one warp for each item.
Grid grid_of_warps(int64_t items) {
  constexpr int64_t kWarps = 4, kWarpThreads = 32;
  return {std::min<int64_t>((items + kWarps - 1) / kWarps, std::numeric_limits<int32_t>::max()), kWarps * kWarpThreads};
}

struct DeviceAttention : Function<DeviceAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const KeyValuePair& pool, const RaggedRows& rows, AttentionRule rule) {
    const KeyValuePair whole = with_whole_heads(pool);
    tensor_list kept{query.contiguous(), key.contiguous(),  value.contiguous(), whole.key,
                     whole.value,        rows.token_bounds, rows.token_row_N,   rows.earlier_bounds,
                     rows.earlier_E,     rows.query_bounds, rows.query_row_M,   rows.query_place_M};
    context->saved_data["window"] = rows.window;
    context->saved_data["scale"] = rule.scale;
    context->saved_data["cap"] = rule.cap;
    Tensor out = at::empty(query.sizes(), query.options());
    kept.push_back(at::empty({query.size(0), query.size(1), 2}, query.options().dtype(precise_type(query))));
    launch_for_queries(kept, context, "ragged_attention", to_write(out), to_write(kept[kSoftmax]));
    if (rule.sinks_H.defined()) add_sinks(rule.sinks_H, out, kept[kSoftmax]);
    context->save_for_backward(std::move(kept));
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list kept = context->get_saved_variables();
    const Tensor grad_out = grads[0].contiguous();
    Tensor grad_query = at::empty_like(kept[kQueries]);
    const Tensor means = at::empty(kept[kQueries].sizes().slice(0, 2), kept[kSoftmax].options());
    launch_for_queries(kept, context, "ragged_query_gradient", to_read(grad_out), to_read(kept[kSoftmax]),
                       to_write(grad_query), to_write(means));
    Tensor grad_key = at::empty_like(kept[kKeys]), grad_value = at::empty_like(kept[kValues]);
    const auto [heads, kv_heads, dim] = sizes(kept);
    auto& data = context->saved_data;
    const int64_t tokens = kept[kKeys].size(0);
    launch_on(grad_out, "ragged_key_gradient", grid_of_warps(tokens * kv_heads), to_read(kept[kQueries]),
              to_read(kept[kKeys]), to_read(kept[kValues]), to_read(kept[kOwnBounds]), to_read(kept[kOwnRows]),
              to_read(kept[kBoundsOfQueries]), to_read(kept[kPlacesOfQueries]), to_read(grad_out),
              to_read(kept[kSoftmax]), to_read(means), to_write(grad_key), to_write(grad_value), to_count(tokens),
              to_count(data["window"].toInt()), heads, kv_heads, dim, data["scale"].toDouble(), data["cap"].toDouble());
    return {grad_query, grad_key, grad_value, Tensor(), Tensor(), Tensor()};
  }

 private:
  struct Sizes {
    int heads, kv_heads, dim;
  };
  static Sizes sizes(const tensor_list& kept) {
    return {static_cast<int>(kept[kQueries].size(1)), static_cast<int>(kept[kKeys].size(1)),
            static_cast<int>(kept[kQueries].size(2))};
  }

  /// `own`: the arguments that this kernel has between the layout and the counts.
  template <typename... Own>
  static void launch_for_queries(const tensor_list& kept, AutogradContext* context, const char* name, Own... own) {
    const auto [heads, kv_heads, dim] = sizes(kept);
    const int64_t queries = kept[kQueries].size(0);
    const Tensor& pool = kept[kPoolKeys];
    auto& data = context->saved_data;
    launch_on(kept[kQueries], name, grid_of_warps(queries * heads), to_read(kept[kQueries]), to_read(kept[kKeys]),
              to_read(kept[kValues]), to_read(pool), to_read(kept[kPoolValues]), to_read(kept[kOwnBounds]),
              to_read(kept[kPoolBounds]), to_read(kept[kPoolPlaces]), to_read(kept[kRowsOfQueries]),
              to_read(kept[kPlacesOfQueries]), own..., to_count(queries), to_count(pool.defined() ? pool.stride(0) : 0),
              to_count(data["window"].toInt()), heads, kv_heads, dim, data["scale"].toDouble(), data["cap"].toDouble());
  }
};

}  // namespace

Tensor device_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const RaggedRows& rows, AttentionRule rule) {
  const int64_t pool = pool_KSC.key.defined() ? pool_KSC.key.size(1) * pool_KSC.key.size(2) : 0;
  const int64_t most = std::max({pool, fresh_NKC.key.numel(), query_MHC.size(0) * query_MHC.size(1)});
  // the caller then tries a smaller batch
  TORCH_CHECK_WITH(OutOfMemoryError, most <= std::numeric_limits<int32_t>::max(),
                   "attention counts by 32 bits: expected fewer rows together, got ", most, " numbers");
  return DeviceAttention::apply(query_MHC, fresh_NKC.key, fresh_NKC.value, pool_KSC, rows, rule);
}

}  // namespace lancet
