#include "lancet/kernels/decoder_ops.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "decoder_passes.h"
#include "device_launch.h"
#include "host_dispatch.h"

namespace lancet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

bool has_kernels(const Tensor& x) { return launcher_of(x) != nullptr; }
/// Whether the operation can be done in one pass over memory.
bool has_passes(const Tensor& x) { return has_kernels(x) || has_host_loops(x); }

struct RmsNorm : Function<RmsNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x_in, const Tensor& weight, double eps) {
    const Tensor x = x_in.contiguous();
    context->save_for_backward({x, weight});
    context->saved_data["eps"] = eps;
    return has_kernels(x) ? on_device::norm(x, weight, eps) : on_host::norm(x, weight, eps);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const Tensor grad_y = grads[0].contiguous();
    const double eps = context->saved_data["eps"].toDouble();
    return {has_kernels(x) ? on_device::norm_gradient(x, weight, grad_y, {}, eps)
                           : on_host::norm_gradient(x, weight, grad_y, eps),
            Tensor(), Tensor()};
  }
};

/// A sum and its norm in one kernel of our own: without such kernels the sum is an operation of its own.
struct AddRmsNorm : Function<AddRmsNorm> {
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& added, const Tensor& weight,
                               double eps) {
    const NormedSum both = on_device::norm_sum(x.contiguous(), added.contiguous(), weight, eps);
    context->set_materialize_grads(false);
    context->save_for_backward({both.sum, weight});
    context->saved_data["eps"] = eps;
    return {both.sum, both.normed};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor& grad_sum = grads[0];
    const Tensor grad = !grads[1].defined()
                            ? grad_sum
                            : on_device::norm_gradient(saved[0], saved[1], grads[1].contiguous(),
                                                       grad_sum.defined() ? grad_sum.contiguous() : grad_sum,
                                                       context->saved_data["eps"].toDouble());
    return {grad, grad, Tensor(), Tensor()};
  }
};

/// The norm on devices without our kernels or loops: fewer operations than autograd would record for the forward pass.
struct RmsNormChain : Function<RmsNormChain> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, double eps) {
    const Tensor precise = widened(x);
    const Tensor scale = inverse_rms(precise, eps);
    context->save_for_backward({x, weight, scale});
    return weight * (precise * scale).to(x.scalar_type());
  }

  /// Computes, with n = x / rms: d x = (d n - n mean(d n * n)) / rms.
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &scale = saved[2];
    const Tensor grad_n = widened(grads[0] * weight), n = widened(x) * scale;
    const Tensor along = (grad_n * n).mean(-1, /*keepdim=*/true);
    return {at::addcmul(grad_n, n, along, -1).mul_(scale).to(x.scalar_type()), Tensor(), Tensor()};
  }

  static Tensor widened(const Tensor& x) { return x.to(precise_type(x)); }
  static Tensor inverse_rms(const Tensor& precise, double eps) {
    return torch::rsqrt(precise.square().mean(-1, /*keepdim=*/true) + eps);
  }
};

/// x [..., F] as rows [N, F].
Tensor in_rows(const Tensor& x) { return x.view({x.size(-1) == 0 ? 0 : x.numel() / x.size(-1), x.size(-1)}); }

Tensor gated(const GateRows& rows) { return has_kernels(rows.gate) ? on_device::gate(rows) : on_host::gate(rows); }

void gate_gradient(const GateRows& rows, const Tensor& grad_y, const GateRows& gradients) {
  if (has_kernels(grad_y))
    on_device::gate_gradient(rows, grad_y, gradients);
  else
    on_host::gate_gradient(rows, grad_y, gradients);
}

struct SiluTimes : Function<SiluTimes> {
  static Tensor forward(AutogradContext* context, const Tensor& gate_in, const Tensor& up_in) {
    const Tensor gate = gate_in.contiguous(), up = up_in.contiguous();
    context->save_for_backward({gate, up});
    return gated({in_rows(gate), in_rows(up)}).view_as(gate);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor grad_gate = at::empty_like(saved[0]), grad_up = at::empty_like(saved[1]);
    gate_gradient({in_rows(saved[0]), in_rows(saved[1])}, grads[0].contiguous(),
                  {in_rows(grad_gate), in_rows(grad_up)});
    return {grad_gate, grad_up};
  }
};

/// Gates and ups are in one tensor, and so are their gradients.
struct SiluTimesHalves : Function<SiluTimesHalves> {
  static Tensor forward(AutogradContext* context, const Tensor& both_in) {
    const Tensor both = both_in.contiguous();
    context->save_for_backward({both});
    std::vector<int64_t> sizes = both.sizes().vec();
    sizes.back() /= 2;
    return gated(halves(both)).view(sizes);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor gradient = at::empty_like(saved[0]);
    gate_gradient(halves(saved[0]), grads[0].contiguous(), halves(gradient));
    return {gradient};
  }

 private:
  static GateRows halves(const Tensor& both) {
    const std::vector<Tensor> parts = in_rows(both).chunk(2, 1);
    return {parts[0], parts[1]};
  }
};

struct RotatePairs : Function<RotatePairs> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cos, const Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(x.contiguous(), cos, sin, Direction::kForward);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    return {rotate(grads[0].contiguous(), saved[0], saved[1], Direction::kBack), Tensor(), Tensor()};
  }

 private:
  static Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn) {
    return has_kernels(x) ? on_device::rotate(x, cos, sin, turn) : on_host::rotate(x, cos, sin, turn);
  }
};

struct HeadSplitting : Function<HeadSplitting> {
  static variable_list forward(AutogradContext* context, const Tensor& joined_in, const HeadCounts& counts,
                               const RotaryTables& tables) {
    const Tensor joined = joined_in.contiguous();
    context->save_for_backward({tables.cos_BT1C, tables.sin_BT1C});
    const auto part = [&](int64_t heads) {
      return at::empty({joined.size(0), joined.size(1), heads, counts.dim}, joined.options());
    };
    const SplitHeads heads{part(counts.heads), part(counts.kv_heads), part(counts.kv_heads)};
    if (has_kernels(joined))
      on_device::split_heads(joined, tables, heads);
    else
      on_host::split_heads(joined, tables, heads);
    return {heads.query_BTHC, heads.key_BTKC, heads.value_BTKC};
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const SplitHeads heads{grads[0].contiguous(), grads[1].contiguous(), grads[2].contiguous()};
    const int64_t all = heads.query_BTHC.size(2) + 2 * heads.key_BTKC.size(2);
    const Tensor joined = at::empty({grads[0].size(0), grads[0].size(1), all * grads[0].size(3)}, grads[0].options());
    if (has_kernels(joined))
      on_device::join_heads(heads, {saved[0], saved[1]}, joined);
    else
      on_host::join_heads(heads, {saved[0], saved[1]}, joined);
    return {joined, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  if (!weight.requires_grad())
    return has_passes(x) ? RmsNorm::apply(x, weight.contiguous(), eps) : RmsNormChain::apply(x, weight, eps);
  // autograd's own operations, which also give the weight its gradient
  const Tensor precise = RmsNormChain::widened(x);
  return weight * (precise * RmsNormChain::inverse_rms(precise, eps)).to(x.scalar_type());
}

Tensor rms_norm_precise(const Tensor& x, const Tensor& weight, double eps) {
  // if nothing is rounded between the products, the loops of rms_norm compute the same result
  if (x.scalar_type() == precise_type(x)) return rms_norm(x, weight.to(x.scalar_type()), eps);
  return rms_norm(x.to(precise_type(x)), weight.to(precise_type(x)), eps).to(x.scalar_type());
}

at::ScalarType precise_type(const Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

NormedSum add_rms_norm(const Tensor& x, const Tensor& added, const Tensor& weight, double eps) {
  if (has_kernels(x) && !weight.requires_grad() && x.sizes() == added.sizes()) {
    const variable_list both = AddRmsNorm::apply(x, added, weight.contiguous(), eps);
    return {both[0], both[1]};
  }
  const Tensor sum = x + added;
  return {sum, rms_norm(sum, weight, eps)};
}

Tensor silu_times(const Tensor& gate, const Tensor& up) {
  return has_passes(gate) ? SiluTimes::apply(gate, up) : at::silu(gate) * up;
}

Tensor silu_times_halves(const Tensor& both) {
  if (has_passes(both)) return SiluTimesHalves::apply(both);
  const std::vector<Tensor> halves = both.chunk(2, -1);
  return silu_times(halves[0], halves[1]);
}

SplitHeads split_heads(const Tensor& joined, HeadCounts counts, const RotaryTables& tables) {
  const bool turns = tables.cos_BT1C.defined();
  if (has_passes(joined) && counts.dim % 2 == 0) {
    const auto whole = [&](const Tensor& table) { return turns ? table.contiguous() : table; };
    const variable_list heads =
        HeadSplitting::apply(joined, counts, RotaryTables{whole(tables.cos_BT1C), whole(tables.sin_BT1C)});
    return {heads[0], heads[1], heads[2]};
  }
  const std::vector<Tensor> parts =
      joined.unflatten(-1, {-1, counts.dim}).split_with_sizes({counts.heads, counts.kv_heads, counts.kv_heads}, 2);
  const auto turned = [&](const Tensor& x) {
    return turns ? rotate_pairs(x, tables.cos_BT1C, tables.sin_BT1C) : x.contiguous();
  };
  return {turned(parts[0]), turned(parts[1]), parts[2].contiguous()};
}

Tensor rotate_pairs(const Tensor& x_BTHC, const Tensor& cos_BT1C, const Tensor& sin_BT1C) {
  if (has_passes(x_BTHC)) return RotatePairs::apply(x_BTHC, cos_BT1C.contiguous(), sin_BT1C.contiguous());
  const auto halves = x_BTHC.chunk(2, -1);
  return x_BTHC * cos_BT1C + torch::cat({-halves[1], halves[0]}, -1) * sin_BT1C;
}

}  // namespace lancet
