// Launches the attention of device/attention_rows.h for tensors, forward and back.
#include "attention_device.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "device_launch.h"
#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

/// Places of the tensors that are kept.
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

const void* read_only(const Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; }

/// A warp an item.
Grid grid_of_warps(int64_t items) {
  constexpr int64_t kWarps = 4, kWarpThreads = 32;
  return {std::min<int64_t>((items + kWarps - 1) / kWarps, std::numeric_limits<int32_t>::max()), kWarps * kWarpThreads};
}

/// The pool with each head's vectors side by side, where it lies or as a copy.
Tensor with_whole_vectors(const Tensor& pool_KSC) {
  if (!pool_KSC.defined() || (pool_KSC.stride(2) == 1 && pool_KSC.stride(1) == pool_KSC.size(2))) return pool_KSC;
  return pool_KSC.contiguous();
}

struct DeviceAttention : Function<DeviceAttention> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        const KeyValuePair& pool, const RaggedRows& rows, AttentionRule rule) {
    Tensor pool_key = with_whole_vectors(pool.key), pool_value = with_whole_vectors(pool.value);
    if (pool_key.defined() && pool_key.stride(0) != pool_value.stride(0)) {
      pool_key = pool_key.contiguous();
      pool_value = pool_value.contiguous();
    }
    tensor_list kept{query.contiguous(), key.contiguous(),  value.contiguous(), pool_key,
                     pool_value,         rows.token_bounds, rows.token_row_N,   rows.earlier_bounds,
                     rows.earlier_E,     rows.query_bounds, rows.query_row_M,   rows.query_place_M};
    context->saved_data["window"] = rows.window;
    context->saved_data["scale"] = rule.scale;
    context->saved_data["cap"] = rule.cap;
    Tensor out = at::empty(query.sizes(), query.options());
    kept.push_back(at::empty({query.size(0), query.size(1), 2}, query.options().dtype(precise_type(query))));
    launch_for_queries(kept, context, "ragged_attention", out.mutable_data_ptr(), kept[kSoftmax].mutable_data_ptr());
    context->save_for_backward(std::move(kept));
    return out;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list kept = context->get_saved_variables();
    const Tensor grad_out = grads[0].contiguous();
    Tensor grad_query = at::empty_like(kept[kQueries]);
    const Tensor means = at::empty(kept[kQueries].sizes().slice(0, 2), kept[kSoftmax].options());
    launch_for_queries(kept, context, "ragged_query_gradient", read_only(grad_out), read_only(kept[kSoftmax]),
                       grad_query.mutable_data_ptr(), means.mutable_data_ptr());
    Tensor grad_key = at::empty_like(kept[kKeys]), grad_value = at::empty_like(kept[kValues]);
    const auto [heads, kv_heads, dim] = sizes(kept);
    auto& data = context->saved_data;
    const int64_t tokens = kept[kKeys].size(0);
    launch_on(grad_out, "ragged_key_gradient", grid_of_warps(tokens * kv_heads), read_only(kept[kQueries]),
              read_only(kept[kKeys]), read_only(kept[kValues]), read_only(kept[kOwnBounds]), read_only(kept[kOwnRows]),
              read_only(kept[kBoundsOfQueries]), read_only(kept[kPlacesOfQueries]), read_only(grad_out),
              read_only(kept[kSoftmax]), read_only(means), grad_key.mutable_data_ptr(), grad_value.mutable_data_ptr(),
              static_cast<long long>(tokens), static_cast<long long>(data["window"].toInt()), heads, kv_heads, dim,
              data["scale"].toDouble(), data["cap"].toDouble());
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

  /// `own`: the kernel's arguments between the layout and the counts.
  template <typename... Own>
  static void launch_for_queries(const tensor_list& kept, AutogradContext* context, const char* name, Own... own) {
    const auto [heads, kv_heads, dim] = sizes(kept);
    const int64_t queries = kept[kQueries].size(0);
    const Tensor& pool = kept[kPoolKeys];
    auto& data = context->saved_data;
    launch_on(kept[kQueries], name, grid_of_warps(queries * heads), read_only(kept[kQueries]), read_only(kept[kKeys]),
              read_only(kept[kValues]), read_only(pool), read_only(kept[kPoolValues]), read_only(kept[kOwnBounds]),
              read_only(kept[kPoolBounds]), read_only(kept[kPoolPlaces]), read_only(kept[kRowsOfQueries]),
              read_only(kept[kPlacesOfQueries]), own..., static_cast<long long>(queries),
              static_cast<long long>(pool.defined() ? pool.stride(0) : 0),
              static_cast<long long>(data["window"].toInt()), heads, kv_heads, dim, data["scale"].toDouble(),
              data["cap"].toDouble());
  }
};

}  // namespace

Tensor device_attention(const Tensor& query_MHC, const KeyValuePair& fresh_NKC, const KeyValuePair& pool_KSC,
                        const RaggedRows& rows, AttentionRule rule) {
  return DeviceAttention::apply(query_MHC, fresh_NKC.key, fresh_NKC.value, pool_KSC, rows, rule);
}

}  // namespace lancet
