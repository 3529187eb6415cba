// OLMo 1 (arXiv 2402.00838): norms without weights; queries, keys and values may be clamped.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_olmo(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm = NormKind::kLayer;
  config.norm_eps = 1e-5;
  config.bare_norms = true;
  if (keys.has("clip_qkv")) config.qkv_limit = keys.above_zero("clip_qkv");
  config.rope = read_rope(keys, config);
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
}

}  // namespace

constinit const Family olmo = {.name = "OLMo",
                               .architectures = {"OlmoForCausalLM"},
                               .model_types = {"olmo"},
                               .understood_keys = llama_keys({"attention_bias", "clip_qkv"}),
                               .weights = llama_rows(),
                               .ignored_tensors = kLlamaIgnoredTensors,
                               .read = read_olmo};

}  // namespace lancet
