// Weights that read the same input lie one after the other in memory, so that one product takes all of them. Each stays
// a tensor of its own, a view: files, edits and exports see no difference, and nothing is held twice.
#pragma once

#include <array>
#include <map>
#include <span>

#include "lancet/models/quantised_linear.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Kinds whose weights are neighbours, in their order in memory.
using NeighbourKinds = std::span<const WeightKind>;

inline constexpr std::array kQueryKeyValue{WeightKind::kQuery, WeightKind::kKey, WeightKind::kValue};
inline constexpr std::array kQueryKeyValueBias{WeightKind::kQueryBias, WeightKind::kKeyBias, WeightKind::kValueBias};
inline constexpr std::array kGateUp{WeightKind::kGate, WeightKind::kUp};
inline constexpr std::array kGateUpBias{WeightKind::kGateBias, WeightKind::kUpBias};

/// Makes room on `device` for those of `specs` that are to be neighbours: all of a group in full precision, none of
/// them to be edited, since one that is replaced would leave its room to nobody. Experts are not.
std::map<WeightId, Tensor> neighbour_places(std::span<const WeightSpec* const> specs, const QuantiseRule& rule,
                                            at::ScalarType type, at::Device device);

/// Returns the rows of all `parts` as one view. Undefined where they do not lie so, or where one of them learns.
Tensor joined_neighbours(std::span<const Tensor* const> parts);

}  // namespace lancet
