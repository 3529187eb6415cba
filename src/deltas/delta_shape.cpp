#include "delta_shape.h"

#include <torch/types.h>

namespace lancet {

bool fits_weight(const WeightDelta& delta, const std::vector<int64_t>& shape) {
  if (const auto* dense = std::get_if<DenseDelta>(&delta))
    return dense->full_OI.is_floating_point() && dense->full_OI.sizes() == shape;
  const auto& [left_OR, right_RI] = std::get<LowRankDelta>(delta);
  return left_OR.is_floating_point() && left_OR.scalar_type() == right_RI.scalar_type() && left_OR.dim() == 2 &&
         right_RI.dim() == 2 && left_OR.size(1) == right_RI.size(0) &&
         std::vector{left_OR.size(0), right_RI.size(1)} == shape;
}

}  // namespace lancet
