#include "lancet/kernels/decoder_ops.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "decoder_loops.h"
#include "host_dispatch.h"

namespace lancet {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

struct RmsNorm : Function<RmsNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x_in, const Tensor& weight, double eps) {
    const Tensor x = x_in.contiguous();
    Tensor y = at::empty_like(x);
    const int64_t width = x.size(-1);
    for_host_type(x, [&]<typename T>(T) {
      const RmsNormRows<T> rows{x.const_data_ptr<T>(), weight.const_data_ptr<T>(), width, eps};
      T* out = y.mutable_data_ptr<T>();
      parallel_rows(x.numel() / width, width, [&](RowRange range) { rms_norm_forward(rows, out, range); });
    });
    context->save_for_backward({x, weight});
    context->saved_data["eps"] = eps;
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const Tensor grad_y = grads[0].contiguous();
    Tensor grad_x = at::empty_like(x);
    const int64_t width = x.size(-1);
    for_host_type(x, [&]<typename T>(T) {
      const RmsNormRows<T> rows{x.const_data_ptr<T>(), weight.const_data_ptr<T>(), width,
                                context->saved_data["eps"].toDouble()};
      const T* gy = grad_y.const_data_ptr<T>();
      T* gx = grad_x.mutable_data_ptr<T>();
      parallel_rows(x.numel() / width, width, [&](RowRange range) { rms_norm_backward(rows, gy, gx, range); });
    });
    return {grad_x, Tensor(), Tensor()};
  }
};

/// For devices without loops of ours: fewer operations than autograd makes of the forward pass.
struct RmsNormChain : Function<RmsNormChain> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, double eps) {
    const Tensor precise = widened(x);
    const Tensor scale = inverse_rms(precise, eps);
    context->save_for_backward({x, weight, scale});
    return weight * (precise * scale).to(x.scalar_type());
  }

  /// With n = x / rms: d x = (d n - n mean(d n * n)) / rms.
  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &scale = saved[2];
    const Tensor grad_n = widened(grads[0] * weight), n = widened(x) * scale;
    const Tensor along = (grad_n * n).mean(-1, /*keepdim=*/true);
    return {at::addcmul(grad_n, n, along, -1).mul_(scale).to(x.scalar_type()), Tensor(), Tensor()};
  }

  static Tensor widened(const Tensor& x) { return x.scalar_type() == torch::kDouble ? x : x.to(torch::kFloat); }
  static Tensor inverse_rms(const Tensor& precise, double eps) {
    return torch::rsqrt(precise.square().mean(-1, /*keepdim=*/true) + eps);
  }
};

struct SiluTimes : Function<SiluTimes> {
  static Tensor forward(AutogradContext* context, const Tensor& gate_in, const Tensor& up_in) {
    const Tensor gate = gate_in.contiguous(), up = up_in.contiguous();
    Tensor y = at::empty_like(gate);
    for_host_type(gate, [&]<typename T>(T) {
      const GatedValues<T> values{gate.const_data_ptr<T>(), up.const_data_ptr<T>()};
      T* out = y.mutable_data_ptr<T>();
      parallel_rows(gate.numel(), 1, [&](RowRange range) { silu_times_forward(values, out, range); });
    });
    context->save_for_backward({gate, up});
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1];
    const Tensor grad_y = grads[0].contiguous();
    Tensor grad_gate = at::empty_like(gate), grad_up = at::empty_like(up);
    for_host_type(gate, [&]<typename T>(T) {
      const GatedValues<T> values{gate.const_data_ptr<T>(), up.const_data_ptr<T>()};
      const T* gy = grad_y.const_data_ptr<T>();
      T* gg = grad_gate.mutable_data_ptr<T>();
      T* gu = grad_up.mutable_data_ptr<T>();
      parallel_rows(gate.numel(), 1, [&](RowRange range) { silu_times_backward(values, gy, gg, gu, range); });
    });
    return {grad_gate, grad_up};
  }
};

struct RotatePairs : Function<RotatePairs> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cos, const Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(x.contiguous(), cos, sin,
                  [](const auto& rows, auto* y, RowRange range) { rotate_forward(rows, y, range); });
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& grads) {
    const tensor_list saved = context->get_saved_variables();
    return {rotate(grads[0].contiguous(), saved[0], saved[1],
                   [](const auto& rows, auto* y, RowRange range) { rotate_backward(rows, y, range); }),
            Tensor(), Tensor()};
  }

 private:
  template <typename Turn>
  static Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, const Turn& turn) {
    Tensor y = at::empty_like(x);
    const int64_t heads = x.size(2), dim = x.size(3);
    for_host_type(x, [&]<typename T>(T) {
      const RotaryRows<T> rows{x.const_data_ptr<T>(), cos.const_data_ptr<T>(), sin.const_data_ptr<T>(), heads, dim};
      T* out = y.mutable_data_ptr<T>();
      parallel_rows(x.size(0) * x.size(1), heads * dim, [&](RowRange range) { turn(rows, out, range); });
    });
    return y;
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  if (!weight.requires_grad())
    return has_host_loops(x) ? RmsNorm::apply(x, weight.contiguous(), eps) : RmsNormChain::apply(x, weight, eps);
  const Tensor precise = RmsNormChain::widened(x);  // autograd's own, which gives the weight its gradient too
  return weight * (precise * RmsNormChain::inverse_rms(precise, eps)).to(x.scalar_type());
}

Tensor rms_norm_precise(const Tensor& x, const Tensor& weight, double eps) {
  // where nothing is rounded between the products, the other norm's loops do the same
  if (x.scalar_type() == precise_type(x)) return rms_norm(x, weight.to(x.scalar_type()), eps);
  return rms_norm(x.to(precise_type(x)), weight.to(precise_type(x)), eps).to(x.scalar_type());
}

at::ScalarType precise_type(const Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

Tensor silu_times(const Tensor& gate, const Tensor& up) {
  return has_host_loops(gate) ? SiluTimes::apply(gate, up) : at::silu(gate) * up;
}

Tensor rotate_pairs(const Tensor& x_BTHC, const Tensor& cos_BT1C, const Tensor& sin_BT1C) {
  if (has_host_loops(x_BTHC)) return RotatePairs::apply(x_BTHC, cos_BT1C.contiguous(), sin_BT1C.contiguous());
  const auto halves = x_BTHC.chunk(2, -1);
  return x_BTHC * cos_BT1C + torch::cat({-halves[1], halves[0]}, -1) * sin_BT1C;
}

}  // namespace lancet
