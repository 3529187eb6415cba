// Memory for weights that read the same input: they are placed one after the other, so that one product uses all of
// them.
#pragma once

#include <map>
#include <span>

#include "lancet/models/quantised_linear.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Allocates memory on `device` for those weights of `specs` that belong together: a whole group in full precision, of
/// which no weight is to be edited, because a replaced weight would leave its part of the memory unused. Weights of
/// experts are not grouped.
std::map<WeightId, Tensor> neighbour_places(std::span<const WeightSpec* const> specs, const QuantiseRule& rule,
                                            at::ScalarType type, at::Device device);

}  // namespace lancet
