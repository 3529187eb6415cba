// Qwen2 and Qwen2.5 (arXiv 2407.10671, 2412.15115): Llama's block with biases for queries, keys and values, which no
// key of config.json mentions.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_qwen2(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.qkv_bias = true;
  read_upper_windows(keys, config);
}

}  // namespace

constinit const Family qwen2 = {
    .name = "Qwen2",
    .architectures = {"Qwen2ForCausalLM"},
    .model_types = {"qwen2"},
    .understood_keys = llama_keys({"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"}),
    .harmless_keys = {"use_mrope"},
    .weights = llama_rows(),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_qwen2};

}  // namespace lancet
