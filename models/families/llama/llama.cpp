// Llama 1 to 3.3 (arXiv 2302.13971, 2407.21783).
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_llama(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
}

}  // namespace

constinit const Family llama = {.name = "Llama",
                                .architectures = {"LlamaForCausalLM"},
                                .model_types = {"llama"},
                                .understood_keys = llama_keys({"attention_bias", "mlp_bias"}),
                                .weights = llama_rows(),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_llama};

}  // namespace lancet
