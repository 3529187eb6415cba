// Granite (IBM 2024): Llama's block with four multipliers: of embeddings, scores, what blocks add, and logits.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_granite(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
  config.embedding_scale = keys.above_zero("embedding_multiplier", 1);
  config.attention_scale = keys.above_zero("attention_multiplier", 1);
  config.residual_scale = keys.above_zero("residual_multiplier", 1);
  config.logits_scale = 1 / keys.above_zero("logits_scaling", 1);
}

}  // namespace

Family granite() {
  return {.name = "Granite",
          .architectures = {"GraniteForCausalLM"},
          .model_types = {"granite"},
          .understood_keys = llama_keys({"attention_bias", "mlp_bias", "embedding_multiplier", "attention_multiplier",
                                         "residual_multiplier", "logits_scaling"}),
          .weights = llama_rows(),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_granite};
}

}  // namespace lancet
