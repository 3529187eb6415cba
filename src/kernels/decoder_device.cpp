// Launches device/decoder_kernels.cu for tensors: arguments in the order and of the types that stand there.
#include <torch/types.h>

#include "decoder_passes.h"
#include "device_launch.h"

namespace lancet::on_device {
namespace {

const void* read(const Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; }
void* write(const Tensor& x) { return x.defined() ? x.mutable_data_ptr() : nullptr; }

/// Kernels count in long long.
long long count(int64_t n) { return n; }

int64_t rows_of_width(const Tensor& x) { return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1); }

Tensor norm_into(const Tensor& x, const Tensor& added, const Tensor& sum, const Tensor& weight, double eps) {
  Tensor y = at::empty_like(x);
  const int64_t rows = rows_of_width(x), width = x.size(-1);
  launch_on(x, "norm", grid_of_rows(x.scalar_type(), rows, width), read(x), read(added), write(sum), read(weight),
            write(y), count(rows), count(width), eps);
  return y;
}

}  // namespace

Tensor norm(const Tensor& x, const Tensor& weight, double eps) { return norm_into(x, {}, {}, weight, eps); }

NormedSum norm_sum(const Tensor& x, const Tensor& added, const Tensor& weight, double eps) {
  const Tensor sum = at::empty_like(x);
  return {sum, norm_into(x, added, sum, weight, eps)};
}

Tensor norm_gradient(const Tensor& x, const Tensor& weight, const Tensor& grad_y, const Tensor& grad_sum, double eps) {
  Tensor grad_x = at::empty_like(x);
  const int64_t rows = rows_of_width(x), width = x.size(-1);
  launch_on(x, "norm_gradient", grid_of_rows(x.scalar_type(), rows, width), read(x), read(weight), read(grad_y),
            read(grad_sum), write(grad_x), count(rows), count(width), eps);
  return grad_x;
}

Tensor gate(const Tensor& gate, const Tensor& up) {
  Tensor y = at::empty_like(gate);
  launch_on(gate, "gate", grid_of_numbers(gate.scalar_type(), gate.numel()), read(gate), read(up), write(y),
            count(gate.numel()));
  return y;
}

GateGradients gate_gradient(const Tensor& gate, const Tensor& up, const Tensor& grad_y) {
  GateGradients gradients{at::empty_like(gate), at::empty_like(up)};
  launch_on(gate, "gate_gradient", grid_of_numbers(gate.scalar_type(), gate.numel()), read(gate), read(up),
            read(grad_y), write(gradients.gate), write(gradients.up), count(gate.numel()));
  return gradients;
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn) {
  Tensor y = at::empty_like(x);
  const int64_t rows = x.size(0) * x.size(1);
  const auto heads = static_cast<int>(x.size(2)), dim = static_cast<int>(x.size(3));
  if (x.numel() > 0)
    launch_on(x, "rotate", grid_of_rows(x.scalar_type(), rows, int64_t{heads} * dim / 2), read(x), read(cos), read(sin),
              write(y), count(rows), heads, dim, turn == Direction::kBack ? 1 : 0);
  return y;
}

LossParts loss(const Tensor& logits, const Tensor& ids) {
  const int64_t rows = logits.size(0), width = logits.size(1);
  const auto numbers = [&] { return at::empty({rows}, logits.options().dtype(precise_type(logits))); };
  LossParts parts{numbers(), numbers(), numbers()};
  launch_on(logits, "loss", grid_of_rows(logits.scalar_type(), rows, width), read(logits), read(ids), write(parts.loss),
            write(parts.greatest), write(parts.log_sum), count(rows), count(width));
  return parts;
}

Tensor loss_gradient(const Tensor& logits, const Tensor& ids, const LossParts& parts, const Tensor& grad_loss) {
  Tensor grad_logits = at::empty_like(logits);
  const int64_t rows = logits.size(0), width = logits.size(1);
  launch_on(logits, "loss_gradient", grid_of_rows(logits.scalar_type(), rows, width), read(logits), read(ids),
            read(parts.greatest), read(parts.log_sum), read(grad_loss), write(grad_logits), count(rows), count(width));
  return grad_logits;
}

}  // namespace lancet::on_device
