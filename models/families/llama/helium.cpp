// Helium (Kyutai 2025): Llama's block with a rotary embedding of adjacent pairs.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_helium(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_kv_heads = 20, .default_head_dim = 128}, /*default_eps=*/1e-8,
                    /*default_theta=*/1e5);
  config.norm = NormKind::kRmsPrecise;
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.qkv_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
}

}  // namespace

constinit const Family helium = {.name = "Helium",
                                 .architectures = {"HeliumForCausalLM"},
                                 .model_types = {"helium"},
                                 .understood_keys = llama_keys({"attention_bias", "mlp_bias"}),
                                 .weights = llama_rows(),
                                 .ignored_tensors = kLlamaIgnoredTensors,
                                 .read = read_helium};

}  // namespace lancet
