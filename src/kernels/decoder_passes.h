// The operations of decoder_ops.h forward and back, by themselves: as loops on the host, and as kernels of ours where a
// launcher serves the tensors. Inputs are contiguous and of one type; results are new tensors.
#pragma once

#include "lancet/kernels/decoder_ops.h"

namespace lancet {

/// Gates and ups, or their gradients, in rows [N, F] that begin as far apart in both: each in memory of its own, or
/// halves of longer rows.
struct GateRows {
  Tensor gate;
  Tensor up;
};

/// Back: the transpose, for gradients.
enum class Direction { kForward, kBack };

namespace on_host {

Tensor norm(const Tensor& x, const Tensor& weight, double eps);
Tensor norm_gradient(const Tensor& x, const Tensor& weight, const Tensor& grad_y, double eps);
/// y [N, F].
Tensor gate(const GateRows& rows);
void gate_gradient(const GateRows& rows, const Tensor& grad_y, const GateRows& gradients);
/// x [B, T, H, C], tables [B, T, 1, C].
Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn);
/// joined [B, T, (H + 2 K) C]; undefined tables: nothing is turned.
void split_heads(const Tensor& joined, const RotaryTables& tables, const SplitHeads& heads);
/// Joins the gradients of heads.
void join_heads(const SplitHeads& heads, const RotaryTables& tables, const Tensor& joined);

}  // namespace on_host

namespace on_device {

Tensor norm(const Tensor& x, const Tensor& weight, double eps);
/// x + added, and that normed.
NormedSum norm_sum(const Tensor& x, const Tensor& added, const Tensor& weight, double eps);
/// `grad_sum` is added where it is defined.
Tensor norm_gradient(const Tensor& x, const Tensor& weight, const Tensor& grad_y, const Tensor& grad_sum, double eps);
Tensor gate(const GateRows& rows);
void gate_gradient(const GateRows& rows, const Tensor& grad_y, const GateRows& gradients);
Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, Direction turn);
void split_heads(const Tensor& joined, const RotaryTables& tables, const SplitHeads& heads);
void join_heads(const SplitHeads& heads, const RotaryTables& tables, const Tensor& joined);

/// Each [N]; f64 of f64, else f32.
struct LossParts {
  Tensor loss;
  Tensor greatest;  ///< logit
  Tensor log_sum;   ///< log of the sum of exp(logit - greatest)
};
/// Computes the loss of logits [N, V] and ids [N].
LossParts loss(const Tensor& logits, const Tensor& ids);
Tensor loss_gradient(const Tensor& logits, const Tensor& ids, const LossParts& parts, const Tensor& grad_loss);

}  // namespace on_device

}  // namespace lancet
