// The projections that a method without a subject changes.
#pragma once

#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// `modules: {gate: [layers], up: [...], down: [...]}` of an editor, by layer.
std::vector<WeightId> parse_modules(ConfigSection& editor);

/// Throws: ConfigError when the model has no such layer.
void check_modules(const std::vector<WeightId>& modules, const ModelConfig& config);

}  // namespace lancet
