// Cumulative sums with the same bits each time, on any device: torch's own adds in any order on a GPU.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns for each place of a row of `values_BN` the sum of it and all before it: [B, N] f64, on their device. Of host
/// tensors one number after another; else by products.
Tensor cumulative_sums(const Tensor& values_BN);

/// Returns the same by matrix products, whose order is fixed: of blocks of a row with a triangle of ones, then of the
/// blocks' sums likewise. Equal to cumulative_sums() to rounding.
Tensor cumulative_sums_by_products(const Tensor& values_BN);

}  // namespace lancet
