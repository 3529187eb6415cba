// Sizes that the fields of a model give to its weights, and what their parts of stored tensors are called.
#pragma once

#include <cstdint>
#include <string_view>

#include "lancet/models/model_config.h"
#include "lancet/models/weight_kind.h"

namespace lancet {

/// Returns what the axis of a weight in `layer` runs over.
int64_t size_of(const ModelConfig& config, Axis axis, int64_t layer);

/// Returns how many groups the outputs of a tensor are of.
int64_t groups_of(const ModelConfig& config, Layout layout);

/// What of a tensor's parts a name says: "[up]".
std::string_view part_text(WeightKind kind);

}  // namespace lancet
