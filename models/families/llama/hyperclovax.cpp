// HyperCLOVA X SEED (Naver 2025): Granite's multipliers, and norms also after the blocks.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kClovaNorms[] = {{kAttnPostNorm, "model.layers.{}.post_norm1.weight"},
                                     {kMlpPostNorm, "model.layers.{}.post_norm2.weight"}};

void read_hyperclovax(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
  config.embedding_scale = keys.above_zero("embedding_multiplier", 1);
  if (keys.has("attention_multiplier")) config.attention_scale = keys.above_zero("attention_multiplier");
  config.attention_out_scale = config.mlp_out_scale = keys.above_zero("residual_multiplier", 1);
  config.logits_scale = keys.above_zero("logits_scaling", 1);
  config.post_norms = keys.flag_or_true("use_post_norm");
}

}  // namespace

constinit const Family hyperclovax = {
    .name = "HyperCLOVA X",
    .architectures = {"HyperCLOVAXForCausalLM"},
    .model_types = {"hyperclovax"},
    .understood_keys = llama_keys({"attention_bias", "mlp_bias", "embedding_multiplier", "attention_multiplier",
                                   "residual_multiplier", "logits_scaling", "use_post_norm"}),
    .harmless_keys = {"resid_pdrop", "embd_pdrop", "end_token_id"},
    .weights = rows_of({llama_rows(), kClovaNorms}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_hyperclovax};

}  // namespace lancet
