// Room for weights that read the same input: one after the other in memory, so that one product takes all of them.
#pragma once

#include <map>
#include <span>

#include "lancet/models/quantised_linear.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Makes room on `device` for those of `specs` that are to be neighbours: all of a group in full precision, none of
/// them to be edited, since one that is replaced would leave its room to nobody. Experts are not.
std::map<WeightId, Tensor> neighbour_places(std::span<const WeightSpec* const> specs, const QuantiseRule& rule,
                                            at::ScalarType type, at::Device device);

}  // namespace lancet
