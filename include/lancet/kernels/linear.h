// Products with a model's matrices. On the device they are torch's. On the host they are too, but for numbers of 16
// bits on a processor without instructions for them (x86 before AVX512): torch makes such a product number by number,
// backward 100 times slower than one in f32. There numbers are widened, a block at a time, and each result is rounded
// once.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// As at::linear: x [.., I], weight [O, I], bias [O] or undefined -> [.., O].
Tensor linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O = {});

/// y W: [.., O] -> [.., I], the gradient of linear_of() by x. Has none itself.
Tensor linear_gradient(const Tensor& y, const Tensor& weight_OI);

/// What these do on such a host, for any: of f32 or 16 bits. Beside the result they take at most 32 MB, and what 1024
/// rows of x and y take in f32.
Tensor widened_linear_of(const Tensor& x, const Tensor& weight_OI, const Tensor& bias_O = {});
Tensor widened_linear_gradient(const Tensor& y, const Tensor& weight_OI);

}  // namespace lancet
