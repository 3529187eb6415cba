// Runs the loops of decoder_loops.h over tensors, spread over threads.
#include <torch/types.h>

#include "decoder_loops.h"
#include "decoder_passes.h"
#include "host_dispatch.h"

namespace lancet::on_host {

Tensor norm(const Tensor& x, const Tensor& weight, double eps) {
  Tensor y = at::empty_like(x);
  const int64_t width = x.size(-1);
  for_host_type(x, [&]<typename T>(T) {
    const RmsNormRows<T> rows{x.const_data_ptr<T>(), weight.const_data_ptr<T>(), width, eps};
    T* out = y.mutable_data_ptr<T>();
    parallel_rows(x.numel() / width, width, [&](RowRange range) { rms_norm_forward(rows, out, range); });
  });
  return y;
}

Tensor norm_gradient(const Tensor& x, const Tensor& weight, const Tensor& grad_y, double eps) {
  Tensor grad_x = at::empty_like(x);
  const int64_t width = x.size(-1);
  for_host_type(x, [&]<typename T>(T) {
    const RmsNormRows<T> rows{x.const_data_ptr<T>(), weight.const_data_ptr<T>(), width, eps};
    const T* gy = grad_y.const_data_ptr<T>();
    T* gx = grad_x.mutable_data_ptr<T>();
    parallel_rows(x.numel() / width, width, [&](RowRange range) { rms_norm_backward(rows, gy, gx, range); });
  });
  return grad_x;
}

Tensor gate(const Tensor& gate, const Tensor& up) {
  Tensor y = at::empty_like(gate);
  for_host_type(gate, [&]<typename T>(T) {
    const GatedValues<T> values{gate.const_data_ptr<T>(), up.const_data_ptr<T>()};
    T* out = y.mutable_data_ptr<T>();
    parallel_rows(gate.numel(), 1, [&](RowRange range) { silu_times_forward(values, out, range); });
  });
  return y;
}

GateGradients gate_gradient(const Tensor& gate, const Tensor& up, const Tensor& grad_y) {
  GateGradients gradients{at::empty_like(gate), at::empty_like(up)};
  for_host_type(gate, [&]<typename T>(T) {
    const GatedValues<T> values{gate.const_data_ptr<T>(), up.const_data_ptr<T>()};
    const T* gy = grad_y.const_data_ptr<T>();
    T* gg = gradients.gate.mutable_data_ptr<T>();
    T* gu = gradients.up.mutable_data_ptr<T>();
    parallel_rows(gate.numel(), 1, [&](RowRange range) { silu_times_backward(values, gy, gg, gu, range); });
  });
  return gradients;
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn) {
  Tensor y = at::empty_like(x);
  const int64_t heads = x.size(2), dim = x.size(3);
  for_host_type(x, [&]<typename T>(T) {
    const RotaryRows<T> rows{x.const_data_ptr<T>(), cos.const_data_ptr<T>(), sin.const_data_ptr<T>(), heads, dim};
    T* out = y.mutable_data_ptr<T>();
    parallel_rows(x.size(0) * x.size(1), heads * dim, [&](RowRange range) {
      if (turn == Direction::kForward)
        rotate_forward(rows, out, range);
      else
        rotate_backward(rows, out, range);
    });
  });
  return y;
}

}  // namespace lancet::on_host
