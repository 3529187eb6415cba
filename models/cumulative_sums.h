// Cumulative sums with the same bits each time, on any device. torch's own function adds in any order on a GPU.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns, for each place in a row of `values_BN`, the sum of its number and all before it: [B, N] f64, on their
/// device. On the host, one number after another is added; elsewhere products are used.
Tensor cumulative_sums(const Tensor& values_BN);

/// Returns the same from matrix products, whose order is fixed: blocks of a row times a triangle of ones, then the
/// blocks' sums in the same way. It equals cumulative_sums() except for rounding.
Tensor cumulative_sums_by_products(const Tensor& values_BN);

}  // namespace lancet
