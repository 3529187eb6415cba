// Cohere: Command-R and Aya (2024), and Command-R7B (Cohere 2), whose layers without a window have no rotary embedding.
// Attention and MLP are parallel, after one LayerNorm without a bias. The rotary embedding rotates pairs of adjacent
// numbers. Logits are scaled.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_cohere_fields(ConfigReader& keys, ModelConfig& config, double default_theta) {
  read_grouped_sizes(keys, config);
  config.order = BlockOrder::kParallel;
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.theta = default_theta});
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.logits_scale = keys.above_zero("logit_scale", 0.0625);
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
}

void read_cohere(ConfigReader& keys, ModelConfig& config) {
  read_cohere_fields(keys, config, 5e5);
  if (keys.flag("use_qk_norm")) config.head_norm = HeadNorm::kEachHead;
}

void read_cohere2(ConfigReader& keys, ModelConfig& config) {
  read_cohere_fields(keys, config, 1e4);
  const int64_t pattern = keys.positive("sliding_window_pattern", 4);
  read_windows(
      keys, config, [pattern](int64_t layer) { return (layer + 1) % pattern != 0; }, 4096);
  turn_windows_alone(config);
}

}  // namespace

constinit const Family cohere = {
    .name = "Cohere",
    .architectures = {"CohereForCausalLM"},
    .model_types = {"cohere"},
    .understood_keys = llama_keys({"attention_bias", "layer_norm_eps", "logit_scale", "use_qk_norm"}),
    .harmless_keys = {"model_max_length"},
    .weights = rows_of({kLlamaOutside, kLlamaAttentionNorm, kLlamaAttention, kHeadNorms, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_cohere};

constinit const Family cohere2 = {
    .name = "Cohere 2",
    .architectures = {"Cohere2ForCausalLM"},
    .model_types = {"cohere2"},
    .understood_keys = llama_keys(
        {"attention_bias", "layer_norm_eps", "logit_scale", "sliding_window", "layer_types", "sliding_window_pattern"}),
    .harmless_keys = {"_sliding_window_pattern", "cache_implementation", "order_of_interleaved_layers",
                      "position_embedding_type", "rotary_pct", "layer_switch", "use_embedding_sharing",
                      "use_gated_activation", "use_parallel_block", "use_parallel_embedding", "use_qk_norm"},
    .weights = rows_of({kLlamaOutside, kLlamaAttentionNorm, kLlamaAttention, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_cohere2};

}  // namespace lancet
