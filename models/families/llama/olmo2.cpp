// OLMo 2 (arXiv 2501.00656): norms after attention and after the MLP, but not before them; queries and keys are normed
// over all heads together. OLMo 3 (2025) has a window in three of four layers, and these layers have their own rotary
// embedding. OLMoE (arXiv 2409.02060) has experts, and the usual norms before the blocks.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kNorms[] = {{kAttnPostNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                {kMlpPostNorm, "model.layers.{}.post_feedforward_layernorm.weight"}};

void read_olmo2(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {}, /*default_eps=*/1e-5);
  config.norm = NormKind::kRmsPrecise;
  config.head_norm = HeadNorm::kWhole;
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
}

/// transformers 4: scaling applies to layers without a window; both kinds of layers have the usual base.
void read_olmo3_rope(ConfigReader& keys, ModelConfig& config) {
  const RopeDefaults usual{.theta = 5e5};
  if (std::optional<ConfigReader> parameters = keys.object("rope_parameters"))
    return read_rope_by_type(keys, *parameters, usual, usual, config);
  config.rope = read_rope(keys, config, usual);
  config.window_rope = RopeConfig{.dim = config.head_dim, .theta = usual.theta};
}

void read_olmo3(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm = NormKind::kRmsPrecise;
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.head_norm = HeadNorm::kWhole;
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  read_olmo3_rope(keys, config);
  read_windows(
      keys, config, [](int64_t layer) { return (layer + 1) % 4 != 0; }, 4096);
}

void read_olmoe(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_positions = 4096}, /*default_eps=*/1e-5);
  config.head_norm = HeadNorm::kWhole;
  if (keys.has("clip_qkv")) config.qkv_limit = keys.above_zero("clip_qkv");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.experts = read_experts(keys, keys.has("num_local_experts") ? "num_local_experts" : "num_experts",
                                {.count = 64, .chosen = 8});
  config.experts.d_ffn = config.d_ffn;
  config.experts.sums_to_one = keys.flag("norm_topk_prob");
  config.experts.layers.assign(static_cast<size_t>(config.n_layers), true);
}

}  // namespace

constinit const Family olmoe = {
    .name = "OLMoE",
    .architectures = {"OlmoeForCausalLM"},
    .model_types = {"olmoe"},
    .understood_keys = llama_keys(
        {"attention_bias", "clip_qkv", "num_experts", "num_local_experts", "num_experts_per_tok", "norm_topk_prob"}),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits"},
    .weights = rows_of({llama_rows(kHeadNorms), kQwenExperts}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_olmoe};

constinit const Family olmo3 = {.name = "OLMo 3",
                                .architectures = {"Olmo3ForCausalLM"},
                                .model_types = {"olmo3"},
                                .understood_keys = llama_keys({"attention_bias", "sliding_window", "layer_types"}),
                                .weights = rows_of({kLlamaOutside, kLlamaAttention, kHeadNorms, kNorms, kLlamaMlp}),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_olmo3};

constinit const Family olmo2 = {.name = "OLMo 2",
                                .architectures = {"Olmo2ForCausalLM"},
                                .model_types = {"olmo2"},
                                .understood_keys = llama_keys({"attention_bias"}),
                                .weights = rows_of({kLlamaOutside, kLlamaAttention, kHeadNorms, kNorms, kLlamaMlp}),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_olmo2};

}  // namespace lancet
