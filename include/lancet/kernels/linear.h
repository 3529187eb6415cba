// Products with a model's matrices. On accelerators torch computes them. On the host torch does too, except for 16-bit
// numbers on a processor without instructions for them (x86 before AVX512). There torch multiplies number by number,
// and the backward pass is 100 times slower than in f32. In that case lancet widens the numbers one block at a time and
// rounds each result once.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Computes at::linear: x [.., I], weight [O, I], bias [O] or undefined -> [.., O].
Tensor linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O = {});

/// Computes y W: [.., O] -> [.., I], the gradient of linear_of() with respect to x. It is not differentiable itself.
Tensor linear_gradient(const Tensor& y, const Tensor& weight_OI);

/// Compute linear_of() and linear_gradient() by widening, on any host, for numbers of f32 or 16 bits.
Tensor widened_linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O = {});
Tensor widened_linear_gradient(const Tensor& y, const Tensor& weight_OI);

struct LinearSize {
  int64_t rows = 0, inputs = 0, outputs = 0;
};

/// Returns the most bytes that a widened product (or its gradient) needs in addition to its result: one block of the
/// matrix, of at most 16 MiB or one row, and the at most 1024 rows of x and y that are multiplied with it, all in f32.
int64_t widened_scratch_bytes(const LinearSize& size);
int64_t widened_gradient_scratch_bytes(const LinearSize& size);

/// Returns the scratch bytes of linear_of() and linear_gradient(): 0 where torch computes the product.
int64_t linear_scratch_bytes(const LinearSize& size, at::ScalarType dtype, at::Device device);
int64_t linear_gradient_scratch_bytes(const LinearSize& size, at::ScalarType dtype, at::Device device);

// The loss of single tokens: -log softmax of a token's logits at its id. Where lancet's own kernels run, this is one
// pass over the logits forward and one backward, and the log-probabilities of the other ids are never stored.

/// Tensors of shape [N]: f64 for logits in f64, else f32.
struct TokenLosses {
  Tensor loss_N;      ///< differentiable once
  Tensor greatest_N;  ///< log-probability of the likeliest token, not differentiable; undefined unless asked for
};

enum class LossExtra { kNone, kGreatest };

/// Computes the losses. logits: [N, V]; ids: [N], int64, below V, on the same device.
TokenLosses token_losses(const Tensor& logits_NV, const Tensor& ids_N, LossExtra extra);

}  // namespace lancet
