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

}  // namespace lancet
