// Qwen3.5 (Alibaba 2026): three layers with a gated delta rule for each layer with attention, whose results are gated.
// It is dense, or has experts and an MLP through which all tokens go.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/hybrid_rows.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kProjections[] = {{kMixerQuery, "model.layers.{}.linear_attn.in_proj_qkv.weight"},
                                      {kMixerKey, "model.layers.{}.linear_attn.in_proj_qkv.weight"},
                                      {kMixerValue, "model.layers.{}.linear_attn.in_proj_qkv.weight"},
                                      {kMixerGate, "model.layers.{}.linear_attn.in_proj_z.weight"},
                                      {kMixerRate, "model.layers.{}.linear_attn.in_proj_b.weight"},
                                      {kMixerDecay, "model.layers.{}.linear_attn.in_proj_a.weight"}};

void read_qwen3_5(ConfigReader& keys, ModelConfig& config) {
  // Published files of multi-modal models leave out values that are defaults of the family.
  read_grouped_sizes(keys, config,
                     {.default_positions = 32768, .default_heads = 16, .default_kv_heads = 4, .default_head_dim = 256});
  read_hybrid_fields(keys, config);
  config.activation = read_activation(keys, "hidden_act", "silu");
}

void read_qwen3_5_moe(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config,
                     {.ffn = "moe_intermediate_size",
                      .default_positions = 32768,
                      .default_heads = 16,
                      .default_kv_heads = 2,
                      .default_head_dim = 256});
  read_hybrid_fields(keys, config);
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.experts = read_experts(keys, "num_experts", {.count = 256, .chosen = 8});
  config.experts.d_ffn = config.d_ffn;
  config.experts.sums_to_one = true;
  config.experts.layers.assign(static_cast<size_t>(config.n_layers), true);
  read_switched_expert(keys, config, 512);
}

/// Keys of the vision part, of the prediction of several tokens at once, and of training.
constexpr KeyList kOtherQwenKeys = {"vision_config",
                                    "image_token_id",
                                    "video_token_id",
                                    "vision_start_token_id",
                                    "vision_end_token_id",
                                    "mtp_num_hidden_layers",
                                    "mtp_use_dedicated_embeddings",
                                    "language_model_only",
                                    "mamba_ssm_dtype",
                                    "router_aux_loss_coef",
                                    "output_router_logits"};

}  // namespace

constinit const Family qwen3_5_moe = {
    .name = "Qwen3.5-MoE",
    .architectures = {"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"},
    .model_types = {"qwen3_5_moe_text", "qwen3_5_moe"},
    .understood_keys =
        hybrid_keys({"num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size"}),
    .harmless_keys = kOtherQwenKeys,
    .nested_under = "text_config",
    .weights = rows_of(
        {kLlamaOutside, kHybridAttention, kProjections, kHybridMixer, kLlamaMlpNorm, kQwenExperts, kSwitchedExpert}),
    .other_names = {{{"model.", "model.language_model."}}},
    .ignored_tensors = {"mtp.*", "model.visual.*"},
    .read = read_qwen3_5_moe};

constinit const Family qwen3_5 = {
    .name = "Qwen3.5",
    .architectures = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"},
    .model_types = {"qwen3_5_text", "qwen3_5"},
    .understood_keys = hybrid_keys({}),
    .harmless_keys = kOtherQwenKeys,
    .nested_under = "text_config",
    .weights = rows_of({kLlamaOutside, kHybridAttention, kProjections, kHybridMixer, kLlamaMlpNorm, kLlamaMlp}),
    .other_names = {{{"model.", "model.language_model."}}},
    .ignored_tensors = {"mtp.*", "model.visual.*"},
    .read = read_qwen3_5};

}  // namespace lancet
