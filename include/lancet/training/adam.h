// Adam, for parameters of any shape. Source: Kingma and Ba, arXiv 1412.6980, algorithm 1, with the constants given
// there. Defined in value_optimizer.cpp.
#pragma once

#include <cstdint>

#include "lancet/runtime/tensor.h"

namespace lancet {

struct AdamStep {
  int64_t number = 1;  ///< number of the update, from 1
  double lr = 0;
};

/// Updates the moments in place and returns what must be subtracted from the parameters. All tensors have one shape,
/// dtype and device.
Tensor adam_change(Tensor& first_moment, Tensor& second_moment, const Tensor& gradient, AdamStep step);

}  // namespace lancet
