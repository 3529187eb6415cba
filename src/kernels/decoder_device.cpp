// Launches device/decoder_kernels.cu for tensors; arguments have the order and the types of the kernels' parameters.
#include <torch/types.h>

#include "decoder_passes.h"
#include "device_launch.h"

namespace lancet::on_device {
namespace {

int64_t rows_of_width(const Tensor& x) { return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1); }

/// The grid of kernels whose threads process pairs of a row's numbers.
Grid grid_of_heads(const Tensor& joined) {
  return grid_of_rows(joined.scalar_type(), rows_of_width(joined), joined.size(-1) / 2);
}

int count_of(const Tensor& heads_BTHC) { return static_cast<int>(heads_BTHC.size(2)); }
int dim_of(const SplitHeads& heads) { return static_cast<int>(heads.query_BTHC.size(3)); }

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

Tensor gate(const GateRows& rows) {
  const int64_t count = rows.gate.size(0), width = rows.gate.size(1);
  Tensor y = at::empty({count, width}, rows.gate.options());
  if (y.numel() > 0)
    launch_on(y, "gate", grid_of_rows(y.scalar_type(), count, width), to_read(rows.gate), to_read(rows.up), to_write(y),
              to_count(count), to_count(width), to_count(rows.gate.stride(0)));
  return y;
}

void gate_gradient(const GateRows& rows, const Tensor& grad_y, const GateRows& gradients) {
  const int64_t count = rows.gate.size(0), width = rows.gate.size(1);
  if (grad_y.numel() > 0)
    launch_on(grad_y, "gate_gradient", grid_of_rows(grad_y.scalar_type(), count, width), to_read(rows.gate),
              to_read(rows.up), to_read(grad_y), to_write(gradients.gate), to_write(gradients.up), to_count(count),
              to_count(width), to_count(rows.gate.stride(0)));
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

void split_heads(const Tensor& joined, const RotaryTables& tables, const SplitHeads& heads) {
  if (joined.numel() > 0)
    launch_on(joined, "split_heads", grid_of_heads(joined), to_read(joined), to_read(tables.cos_BT1C),
              to_read(tables.sin_BT1C), to_write(heads.query_BTHC), to_write(heads.key_BTKC),
              to_write(heads.value_BTKC), to_count(rows_of_width(joined)), count_of(heads.query_BTHC),
              count_of(heads.key_BTKC), dim_of(heads));
}

void join_heads(const SplitHeads& heads, const RotaryTables& tables, const Tensor& joined) {
  if (joined.numel() > 0)
    launch_on(joined, "join_heads", grid_of_heads(joined), to_read(heads.query_BTHC), to_read(heads.key_BTKC),
              to_read(heads.value_BTKC), to_read(tables.cos_BT1C), to_read(tables.sin_BT1C), to_write(joined),
              to_count(rows_of_width(joined)), count_of(heads.query_BTHC), count_of(heads.key_BTKC), dim_of(heads));
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
