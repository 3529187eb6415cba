// What errors of a matrix matter by, H = alpha C + K K^T, and how large they are by it.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// alpha C + K K^T in the memory of C, [I, I] f64; `keys_IN`: K, of any N.
Tensor with_keys(Tensor moment_II, double weight, const Tensor& keys_IN);

/// trace(M H M^T) of M [O, I]: a number, f64, on the device of both. H: [I, I], or blocks [E, W, W] on its diagonal.
Tensor weighted_square(const Tensor& matrix_OI, const Tensor& importance);

/// The square root of a part by the whole, both numbers and not negative but for rounding; 0 where the whole is 0.
double root_of_share(const Tensor& part, const Tensor& whole);

}  // namespace lancet
