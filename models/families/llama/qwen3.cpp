// Qwen3, dense (arXiv 2505.09388): each head of queries and keys is normed.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_qwen3(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_head_dim = 128});
  config.head_norm = HeadNorm::kPerHead;
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  read_upper_windows(keys, config);
}

}  // namespace

constinit const Family qwen3 = {.name = "Qwen3",
                                .architectures = {"Qwen3ForCausalLM"},
                                .model_types = {"qwen3"},
                                .understood_keys = llama_keys({"attention_bias", "sliding_window", "use_sliding_window",
                                                               "max_window_layers", "layer_types"}),
                                .weights = llama_rows(kHeadNorms),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_qwen3};

}  // namespace lancet
