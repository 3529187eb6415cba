// What a model has of its family's table of weights: sizes, and which rows.
#pragma once

#include <cstdint>
#include <string_view>

#include "lancet/models/model_config.h"
#include "lancet/models/weight_kind.h"

namespace lancet {

// Sizes that the fields of a model give to its weights, and what their parts of stored tensors are called.

/// Returns what the axis of a weight in `layer` runs over.
int64_t size_of(const ModelConfig& config, Axis axis, int64_t layer);

/// Returns how many groups the outputs of a tensor are of.
int64_t groups_of(const ModelConfig& config, Layout layout);

/// What of a tensor's parts a name says: "[up]".
std::string_view part_text(WeightKind kind);

// Which rows of its family's table a model has: fields rule out the others.

/// Whether every expert has its part of the weight.
bool is_of_experts(const WeightRow& row);

/// Whether the fields leave a weight that the family's table has, in this layer.
bool is_there(const ModelConfig& config, const WeightRow& row, int64_t layer);

}  // namespace lancet
