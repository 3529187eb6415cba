// Chooses layers that are `auto` by depth, at the relative depths of published choices. Layers without an MLP do not
// count.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/model_config.h"

namespace lancet {

/// Returns the layers for MEMIT and its variants: the last five of the first three tenths of the layers. For 32 layers:
/// 4 to 8, the published choice for Llama.
std::vector<int64_t> automatic_layers(const ModelConfig& config);

/// Returns ROME's one layer, at a sixth of the depth. For 32 layers: 5, as published.
int64_t automatic_rome_layer(const ModelConfig& config);

/// Returns UltraEdit's layers: from the middle on, one more than an eighth of the depth, at most five. Published for 32
/// layers: 11 to 15 and 18 to 24.
std::vector<int64_t> automatic_middle_layers(const ModelConfig& config);

/// Returns CrispEdit's layers: from three fifths of the depth on, one more than an eighth of the depth, at most five.
/// For 32 layers: 19 to 23, as published.
std::vector<int64_t> automatic_late_layers(const ModelConfig& config);

/// Returns fine-tuning's one layer, at two thirds of the depth. For 32 layers: 21, as published.
int64_t automatic_tuned_layer(const ModelConfig& config);

}  // namespace lancet
