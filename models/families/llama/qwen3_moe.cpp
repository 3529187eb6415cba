// Qwen3 with experts instead of MLPs (arXiv 2505.09388). Qwen2-MoE (2024) and the hybrid Qwen3-Next (2025) also have an
// MLP through which all tokens go.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/hybrid_rows.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kOfMixer = Layout::kByMixerHead;
constexpr WeightRow kNextProjections[] = {{kMixerQuery, "model.layers.{}.linear_attn.in_proj_qkvz.weight", kOfMixer},
                                          {kMixerKey, "model.layers.{}.linear_attn.in_proj_qkvz.weight", kOfMixer},
                                          {kMixerValue, "model.layers.{}.linear_attn.in_proj_qkvz.weight", kOfMixer},
                                          {kMixerGate, "model.layers.{}.linear_attn.in_proj_qkvz.weight", kOfMixer},
                                          {kMixerRate, "model.layers.{}.linear_attn.in_proj_ba.weight", kOfMixer},
                                          {kMixerDecay, "model.layers.{}.linear_attn.in_proj_ba.weight", kOfMixer}};

void read_qwen3_moe(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.head_norm = HeadNorm::kPerHead;
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  if (keys.flag("use_sliding_window")) read_windows(keys, config, [](int64_t) { return true; });
  read_qwen_experts(keys, config, {.count = 128, .chosen = 8, .d_ffn = 768});
}

void read_qwen2_moe(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.qkv_bias = keys.flag_or_true("qkv_bias");
  const int64_t most = keys.positive("max_window_layers", 28);
  if (keys.flag("use_sliding_window"))
    read_windows(keys, config, [most](int64_t layer) { return layer % 2 == 0 && layer < most; });
  read_qwen_experts(keys, config, {.count = 60, .chosen = 4, .d_ffn = 1408});
  read_switched_expert(keys, config, 5632);
}

void read_qwen3_next(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config,
                     {.default_positions = 32768, .default_heads = 16, .default_kv_heads = 2, .default_head_dim = 256});
  read_hybrid_fields(keys, config);
  config.activation = read_activation(keys, "hidden_act", "silu");
  read_qwen_experts(keys, config, {.count = 512, .chosen = 10, .d_ffn = 512, .sums_to_one = true});
  read_switched_expert(keys, config, 512);
}

}  // namespace

constinit const Family qwen3_moe = {
    .name = "Qwen3-MoE",
    .architectures = {"Qwen3MoeForCausalLM"},
    .model_types = {"qwen3_moe"},
    .understood_keys = qwen_expert_keys(llama_keys({"attention_bias", "sliding_window", "use_sliding_window"})),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits", "max_window_layers"},
    .weights = rows_of({llama_rows(kHeadNorms), kQwenExperts}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_qwen3_moe};

constinit const Family qwen2_moe = {
    .name = "Qwen2-MoE",
    .architectures = {"Qwen2MoeForCausalLM"},
    .model_types = {"qwen2_moe"},
    .understood_keys =
        qwen_expert_keys(llama_keys({"qkv_bias", "sliding_window", "use_sliding_window", "max_window_layers",
                                     "layer_types", "shared_expert_intermediate_size"})),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits"},
    .weights = rows_of({llama_rows(), kQwenExperts, kSwitchedExpert}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .experts_parameter = "model.layers.{}.mlp.experts.down_proj",
    .read = read_qwen2_moe};

constinit const Family qwen3_next = {
    .name = "Qwen3-Next",
    .architectures = {"Qwen3NextForCausalLM"},
    .model_types = {"qwen3_next"},
    .understood_keys = qwen_expert_keys(hybrid_keys({"shared_expert_intermediate_size"})),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits"},
    .weights = rows_of({kLlamaOutside, kHybridAttention, kNextProjections, kHybridMixer, kLlamaMlpNorm, kLlamaMlp,
                        kQwenExperts, kSwitchedExpert}),
    .ignored_tensors = {"mtp.*"},
    .read = read_qwen3_next};

}  // namespace lancet
