// The loss of each of some tokens: -log softmax of its logits at its id, as one pass over the logits forward and one
// back where kernels of our own run, which never make the log-probabilities of all others.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Each [N], f64 of logits in f64, else f32.
struct TokenLosses {
  Tensor loss_N;      ///< differentiable once
  Tensor greatest_N;  ///< log-probability of the likeliest token, not differentiable; undefined unless asked for
};

enum class LossExtra { kNone, kGreatest };

/// logits [N, V], ids [N] int64 below V on the same device.
TokenLosses token_losses(const Tensor& logits_NV, const Tensor& ids_N, LossExtra extra);

}  // namespace lancet
