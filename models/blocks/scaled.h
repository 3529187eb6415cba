// Factors that most families leave at 1.
#pragma once

#include <torch/types.h>

namespace lancet {

/// The tensor itself where the factor is 1.
inline at::Tensor scaled(const at::Tensor& x, double factor) { return factor == 1 ? x : x * factor; }

}  // namespace lancet
