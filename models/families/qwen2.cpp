// Qwen2 and Qwen2.5 (arXiv 2407.10671, 2412.15115): Llama's block with biases of queries, keys and values, which no key
// of config.json says.
#include "config_reader.h"
#include "family_list.h"
#include "rows.h"

namespace lancet {
namespace {

void read_qwen2(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm_eps = keys.number("rms_norm_eps", 1e-6);
  config.rope = read_rope(keys, config);
  config.qkv_bias = true;
  config.activation = read_activation(keys, "hidden_act", "silu");
  const int64_t first = keys.has("max_window_layers") ? keys.positive("max_window_layers") : 28;
  if (keys.flag("use_sliding_window")) read_windows(keys, config, [first](int64_t layer) { return layer >= first; });
}

}  // namespace

Family qwen2() {
  return {.name = "Qwen2",
          .architectures = {"Qwen2ForCausalLM"},
          .model_types = {"qwen2"},
          .understood_keys = llama_keys({"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"}),
          .harmless_keys = {"use_mrope"},
          .weights = rows_of({kLlamaOutside, {&kLlamaAttnNorm, 1}, kLlamaAttention, {&kLlamaMlpNorm, 1}, kLlamaMlp}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_qwen2};
}

}  // namespace lancet
