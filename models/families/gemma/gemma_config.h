// What Gemma's generations have in common.
#pragma once

#include "families/config_reader.h"
#include "families/rows.h"

namespace lancet {

/// Norms on both sides of attention and of the MLP (Gemma 2, 3).
inline constexpr WeightRow kGemmaNorms[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                            {kAttnPostNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                            {kMlpNorm, "model.layers.{}.pre_feedforward_layernorm.weight"},
                                            {kMlpPostNorm, "model.layers.{}.post_feedforward_layernorm.weight"}};

/// Norm, biases, embedding scale; tied unless config.json says otherwise.
void read_gemma_fields(ConfigReader& keys, ModelConfig& config);

/// Scale of scores and caps of Gemma 2 and 3.
void read_gemma_attention(ConfigReader& keys, ModelConfig& config);

}  // namespace lancet
