// What layers that are `auto` go by: the depth, as published choices lie. Layers that have no MLP do not count.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/models/model_config.h"

namespace lancet {

/// Returns the layers for MEMIT and its kin: the last five of the first three tenths of the layers. 32 layers: 4 to 8,
/// the published choice for Llama.
std::vector<int64_t> automatic_layers(const ModelConfig& config);

/// ROME's one layer, at a sixth of the depth. 32 layers: 5, as published.
int64_t automatic_rome_layer(const ModelConfig& config);

/// UltraEdit's: from the middle on an eighth of the depth, at most five. Published for 32 layers: 11 to 15 and 18
/// to 24.
std::vector<int64_t> automatic_middle_layers(const ModelConfig& config);

/// CrispEdit's: from three fifths of the depth on an eighth of it, at most five. 32 layers: 19 to 23, as published.
std::vector<int64_t> automatic_late_layers(const ModelConfig& config);

/// Fine-tuning's one layer, at two thirds of the depth. 32 layers: 21, as published.
int64_t automatic_tuned_layer(const ModelConfig& config);

}  // namespace lancet
