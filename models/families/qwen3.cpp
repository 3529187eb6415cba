// Qwen3, dense (arXiv 2505.09388): queries and keys are normed by head.
#include "config_reader.h"
#include "family_list.h"
#include "rows.h"

namespace lancet {
namespace {

constexpr WeightRow kHeadNorms[] = {{WeightKind::kQueryNorm, "model.layers.{}.self_attn.q_norm.weight"},
                                    {WeightKind::kKeyNorm, "model.layers.{}.self_attn.k_norm.weight"}};

void read_qwen3(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  if (!keys.has("head_dim")) config.head_dim = 128;
  config.norm_eps = keys.number("rms_norm_eps", 1e-6);
  config.head_norm = HeadNorm::kPerHead;
  config.rope = read_rope(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.activation = read_activation(keys, "hidden_act", "silu");
  const int64_t first = keys.has("max_window_layers") ? keys.positive("max_window_layers") : 28;
  if (keys.flag("use_sliding_window")) read_windows(keys, config, [first](int64_t layer) { return layer >= first; });
}

}  // namespace

Family qwen3() {
  return {
      .name = "Qwen3",
      .architectures = {"Qwen3ForCausalLM"},
      .model_types = {"qwen3"},
      .understood_keys =
          llama_keys({"attention_bias", "sliding_window", "use_sliding_window", "max_window_layers", "layer_types"}),
      .weights =
          rows_of({kLlamaOutside, {&kLlamaAttnNorm, 1}, kLlamaAttention, kHeadNorms, {&kLlamaMlpNorm, 1}, kLlamaMlp}),
      .ignored_tensors = llama_ignored_tensors(),
      .read = read_qwen3};
}

}  // namespace lancet
