// Seed-OSS (ByteDance 2025): Llama's block with biases of queries, keys and values.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_seed_oss(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_kv_heads = 8, .default_head_dim = 128});
  config.qkv_bias = keys.flag_or_true("attention_bias");
  config.attention_out_bias = keys.flag("attention_out_bias");
  config.mlp_bias = keys.flag("mlp_bias");
}

}  // namespace

constinit const Family seed_oss = {.name = "Seed-OSS",
                                   .architectures = {"SeedOssForCausalLM"},
                                   .model_types = {"seed_oss"},
                                   .understood_keys = llama_keys({"attention_bias", "attention_out_bias", "mlp_bias"}),
                                   .harmless_keys = {"residual_dropout"},
                                   .weights = llama_rows(),
                                   .ignored_tensors = kLlamaIgnoredTensors,
                                   .read = read_seed_oss};

}  // namespace lancet
