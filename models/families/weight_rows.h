// Which rows of its family's table of weights a model has, and their sizes.
#pragma once

#include <cstdint>
#include <string_view>

#include "lancet/models/model_config.h"
#include "lancet/models/weight_kind.h"

namespace lancet {

// The sizes of weights, from the fields of a model, and the names of their parts of stored tensors.

/// Returns the size of the axis of a weight in `layer`.
int64_t size_of(const ModelConfig& config, Axis axis, int64_t layer);

/// Returns the number of groups of a tensor's outputs.
int64_t groups_of(const ModelConfig& config, Layout layout);

/// Returns the text for a tensor's part in a name: "[up]".
std::string_view part_text(WeightKind kind);

// The rows of the family's table that a model has. Some fields rule out rows.

/// Whether the weight has a part for every expert.
bool is_of_experts(const WeightRow& row);

/// Whether the model has this weight of the family's table in this layer, according to its fields.
bool is_there(const ModelConfig& config, const WeightRow& row, int64_t layer);

}  // namespace lancet
