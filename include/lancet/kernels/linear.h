// Products with a model's matrices. On the device they are torch's. On the host they are too, but for numbers of 16
// bits on a processor without instructions for them (x86 before AVX512): torch makes such a product number by number,
// backward 100 times slower than one in f32. There numbers are widened, a block at a time, and each result is rounded
// once.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Computes at::linear: x [.., I], weight [O, I], bias [O] or undefined -> [.., O].
Tensor linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O = {});

/// y W: [.., O] -> [.., I], the gradient of linear_of() by x. Has none itself.
Tensor linear_gradient(const Tensor& y, const Tensor& weight_OI);

/// What these do on such a host, for any: of f32 or 16 bits.
Tensor widened_linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O = {});
Tensor widened_linear_gradient(const Tensor& y, const Tensor& weight_OI);

struct LinearSize {
  int64_t rows = 0, inputs = 0, outputs = 0;
};

/// What a widened product, and its gradient, take at their fullest beside what they return: a block of the matrix of
/// at most 16 MiB or a row, and of at most 1024 rows of x and y what is multiplied with it, all in f32.
int64_t widened_scratch_bytes(const LinearSize& size);
int64_t widened_gradient_scratch_bytes(const LinearSize& size);

/// What linear_of(), and linear_gradient(), take so: 0 where torch has the product.
int64_t linear_scratch_bytes(const LinearSize& size, at::ScalarType dtype, at::Device device);
int64_t linear_gradient_scratch_bytes(const LinearSize& size, at::ScalarType dtype, at::Device device);

// The loss of each of some tokens: -log softmax of its logits at its id, as one pass over the logits forward and one
// back where kernels of our own run, which never make the log-probabilities of all others.

/// Each [N], f64 of logits in f64, else f32.
struct TokenLosses {
  Tensor loss_N;      ///< differentiable once
  Tensor greatest_N;  ///< log-probability of the likeliest token, not differentiable; undefined unless asked for
};

enum class LossExtra { kNone, kGreatest };

/// logits [N, V], ids [N] int64 below V on the same device.
TokenLosses token_losses(const Tensor& logits_NV, const Tensor& ids_N, LossExtra extra);

}  // namespace lancet
