// Which changes a weight can have.
#pragma once

#include <vector>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// Whether it is a change of floating-point numbers of a weight of that shape.
bool fits_weight(const WeightDelta& delta, const std::vector<int64_t>& shape);

}  // namespace lancet
