// Checks which changes fit a weight.
#pragma once

#include <vector>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// Whether the delta has floating-point numbers and fits a weight of that shape.
bool fits_weight(const WeightDelta& delta, const std::vector<int64_t>& shape);

}  // namespace lancet
