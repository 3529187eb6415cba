// Launches device/decoder_kernels.cu for tensors: arguments in the order and of the types that stand there.
#include <torch/types.h>

#include "decoder_passes.h"
#include "device_launch.h"

namespace lancet::on_device {
namespace {

int64_t rows_of_width(const Tensor& x) { return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1); }

Tensor norm_into(const Tensor& x, const Tensor& added, const Tensor& sum, const Tensor& weight, double eps) {
  Tensor y = at::empty_like(x);
  const int64_t rows = rows_of_width(x), width = x.size(-1);
  launch_on(x, "norm", grid_of_rows(x.scalar_type(), rows, width), to_read(x), to_read(added), to_write(sum),
            to_read(weight), to_write(y), to_count(rows), to_count(width), eps);
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
  launch_on(x, "norm_gradient", grid_of_rows(x.scalar_type(), rows, width), to_read(x), to_read(weight),
            to_read(grad_y), to_read(grad_sum), to_write(grad_x), to_count(rows), to_count(width), eps);
  return grad_x;
}

Tensor gate(const Tensor& gate, const Tensor& up) {
  Tensor y = at::empty_like(gate);
  launch_on(gate, "gate", grid_of_numbers(gate.scalar_type(), gate.numel()), to_read(gate), to_read(up), to_write(y),
            to_count(gate.numel()));
  return y;
}

GateGradients gate_gradient(const Tensor& gate, const Tensor& up, const Tensor& grad_y) {
  GateGradients gradients{at::empty_like(gate), at::empty_like(up)};
  launch_on(gate, "gate_gradient", grid_of_numbers(gate.scalar_type(), gate.numel()), to_read(gate), to_read(up),
            to_read(grad_y), to_write(gradients.gate), to_write(gradients.up), to_count(gate.numel()));
  return gradients;
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn) {
  Tensor y = at::empty_like(x);
  const int64_t rows = x.size(0) * x.size(1);
  const auto heads = static_cast<int>(x.size(2)), dim = static_cast<int>(x.size(3));
  if (x.numel() > 0)
    launch_on(x, "rotate", grid_of_rows(x.scalar_type(), rows, int64_t{heads} * dim / 2), to_read(x), to_read(cos),
              to_read(sin), to_write(y), to_count(rows), heads, dim, turn == Direction::kBack ? 1 : 0);
  return y;
}

LossParts loss(const Tensor& logits, const Tensor& ids) {
  const int64_t rows = logits.size(0), width = logits.size(1);
  const auto numbers = [&] { return at::empty({rows}, logits.options().dtype(precise_type(logits))); };
  LossParts parts{numbers(), numbers(), numbers()};
  launch_on(logits, "loss", grid_of_rows(logits.scalar_type(), rows, width), to_read(logits), to_read(ids),
            to_write(parts.loss), to_write(parts.greatest), to_write(parts.log_sum), to_count(rows), to_count(width));
  return parts;
}

Tensor loss_gradient(const Tensor& logits, const Tensor& ids, const LossParts& parts, const Tensor& grad_loss) {
  Tensor grad_logits = at::empty_like(logits);
  const int64_t rows = logits.size(0), width = logits.size(1);
  launch_on(logits, "loss_gradient", grid_of_rows(logits.scalar_type(), rows, width), to_read(logits), to_read(ids),
            to_read(parts.greatest), to_read(parts.log_sum), to_read(grad_loss), to_write(grad_logits), to_count(rows),
            to_count(width));
  return grad_logits;
}

}  // namespace lancet::on_device
