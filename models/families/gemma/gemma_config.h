// Shared by the generations of Gemma.
#pragma once

#include "families/config_reader.h"
#include "families/rows.h"

namespace lancet {

/// The norms before and after attention and MLP (Gemma 2, 3).
inline constexpr WeightRow kGemmaNorms[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                            {kAttnPostNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                            {kMlpNorm, "model.layers.{}.pre_feedforward_layernorm.weight"},
                                            {kMlpPostNorm, "model.layers.{}.post_feedforward_layernorm.weight"}};

/// Reads norm, biases and embedding scale. Embeddings are tied unless config.json says otherwise.
void read_gemma_fields(ConfigReader& keys, ModelConfig& config);

/// Reads the scale of scores, and the caps, of Gemma 2 and 3.
void read_gemma_attention(ConfigReader& keys, ModelConfig& config);

}  // namespace lancet
