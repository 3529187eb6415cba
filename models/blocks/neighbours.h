// Weights that read the same input lie one after the other in memory, so that one product takes all of them. Each stays
// a tensor of its own, a view: files, edits and exports see no difference, and nothing is held twice.
#pragma once

#include <array>
#include <span>

#include "lancet/models/weight_kind.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Kinds whose weights are neighbours, in their order in memory.
using NeighbourKinds = std::span<const WeightKind>;

inline constexpr std::array kQueryKeyValue{WeightKind::kQuery, WeightKind::kKey, WeightKind::kValue};
inline constexpr std::array kQueryKeyValueBias{WeightKind::kQueryBias, WeightKind::kKeyBias, WeightKind::kValueBias};
inline constexpr std::array kGateUp{WeightKind::kGate, WeightKind::kUp};
inline constexpr std::array kGateUpBias{WeightKind::kGateBias, WeightKind::kUpBias};

/// Returns the rows of all `parts` as one view. Undefined where they do not lie so, or where one of them learns.
Tensor joined_neighbours(std::span<const Tensor* const> parts);

}  // namespace lancet
