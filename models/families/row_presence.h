// Which rows of its family's table a model has: fields rule out the others.
#pragma once

#include <cstdint>

#include "lancet/models/model_config.h"

namespace lancet {

/// Whether every expert has its part of the weight.
bool is_of_experts(const WeightRow& row);

/// Whether the fields leave a weight that the family's table has, in this layer.
bool is_there(const ModelConfig& config, const WeightRow& row, int64_t layer);

}  // namespace lancet
