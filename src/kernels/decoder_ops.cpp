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
/// Whether one pass over memory can be had.
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

/// Sum and its norm, for kernels alone: elsewhere the sum is an operation of its own.
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

/// Norm for devices without passes of ours: fewer operations than autograd makes of the forward pass.
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

struct SiluTimes : Function<SiluTimes> {
  static Tensor forward(AutogradContext* context, const Tensor& gate_in, const Tensor& up_in) {
    const Tensor gate = gate_in.contiguous(), up = up_in.contiguous();
    context->save_for_backward({gate, up});
    return has_kernels(gate) ? on_device::gate(gate, up) : on_host::gate(gate, up);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1];
    const Tensor grad_y = grads[0].contiguous();
    const GateGradients gradients =
        has_kernels(gate) ? on_device::gate_gradient(gate, up, grad_y) : on_host::gate_gradient(gate, up, grad_y);
    return {gradients.gate, gradients.up};
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

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  if (!weight.requires_grad())
    return has_passes(x) ? RmsNorm::apply(x, weight.contiguous(), eps) : RmsNormChain::apply(x, weight, eps);
  const Tensor precise = RmsNormChain::widened(x);  // autograd's own, which gives the weight its gradient too
  return weight * (precise * RmsNormChain::inverse_rms(precise, eps)).to(x.scalar_type());
}

Tensor rms_norm_precise(const Tensor& x, const Tensor& weight, double eps) {
  // where nothing is rounded between the products, the other norm's loops do the same
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

Tensor rotate_pairs(const Tensor& x_BTHC, const Tensor& cos_BT1C, const Tensor& sin_BT1C) {
  if (has_passes(x_BTHC)) return RotatePairs::apply(x_BTHC, cos_BT1C.contiguous(), sin_BT1C.contiguous());
  const auto halves = x_BTHC.chunk(2, -1);
  return x_BTHC * cos_BT1C + torch::cat({-halves[1], halves[0]}, -1) * sin_BT1C;
}

}  // namespace lancet
