// The operations of decoder_ops.h, forward and backward, without autograd: as loops on the host, and as our own kernels
// where a launcher supports the tensors. Inputs are contiguous and of one type; results are new tensors.
#pragma once

#include "lancet/kernels/decoder_ops.h"

namespace lancet {

/// Gates and ups, or their gradients, as rows [N, F] with the same stride in both: separate tensors, or halves of
/// longer rows.
struct GateRows {
  Tensor gate;
  Tensor up;
};

/// kBack: the transposed rotation, for gradients.
enum class Direction { kForward, kBack };

namespace on_host {

Tensor norm(const Tensor& x, const Tensor& weight, double eps);
Tensor norm_gradient(const Tensor& x, const Tensor& weight, const Tensor& grad_y, double eps);
/// Returns y [N, F].
Tensor gate(const GateRows& rows);
void gate_gradient(const GateRows& rows, const Tensor& grad_y, const GateRows& gradients);
/// x [B, T, H, C], tables [B, T, 1, C].
Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn);
/// joined [B, T, (H + 2 K) C]; undefined tables: no rotation.
void split_heads(const Tensor& joined, const RotaryTables& tables, const SplitHeads& heads);
/// Joins the gradients of the heads; the inverse of split_heads.
void join_heads(const SplitHeads& heads, const RotaryTables& tables, const Tensor& joined);

}  // namespace on_host

namespace on_device {

Tensor norm(const Tensor& x, const Tensor& weight, double eps);
/// Returns x + added, and the norm of this sum.
NormedSum norm_sum(const Tensor& x, const Tensor& added, const Tensor& weight, double eps);
/// `grad_sum`, if defined, is added to the result.
Tensor norm_gradient(const Tensor& x, const Tensor& weight, const Tensor& grad_y, const Tensor& grad_sum, double eps);
Tensor gate(const GateRows& rows);
void gate_gradient(const GateRows& rows, const Tensor& grad_y, const GateRows& gradients);
Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn);
void split_heads(const Tensor& joined, const RotaryTables& tables, const SplitHeads& heads);
void join_heads(const SplitHeads& heads, const RotaryTables& tables, const Tensor& joined);

/// Tensors [N]; f64 for f64 logits, else f32.
struct LossParts {
  Tensor loss;
  Tensor greatest;  ///< greatest logit
  Tensor log_sum;   ///< log of the sum of exp(logit - greatest)
};
/// Computes the loss of logits [N, V] and ids [N].
LossParts loss(const Tensor& logits, const Tensor& ids);
Tensor loss_gradient(const Tensor& logits, const Tensor& ids, const LossParts& parts, const Tensor& grad_loss);

}  // namespace on_device

}  // namespace lancet
