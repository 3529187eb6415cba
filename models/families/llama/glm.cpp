// GLM-4 9B (arXiv 2406.12793) and GLM-4-0414, which also has norms after the blocks: a rotary embedding of adjacent
// pairs in a part of each head, fused gate and up. GLM-4.5 and 4.6 (arXiv 2508.06471) have Llama's block, with experts
// in all layers except the first ones.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kGlmBefore[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                    {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"}};
constexpr WeightRow kGlmBehind[] = {{kAttnPostNorm, "model.layers.{}.post_self_attn_layernorm.weight"},
                                    {kMlpPostNorm, "model.layers.{}.post_mlp_layernorm.weight"}};
constexpr WeightRow kGlmMlp[] = {{kGate, "model.layers.{}.mlp.gate_up_proj.weight"},
                                 {kUp, "model.layers.{}.mlp.gate_up_proj.weight"},
                                 {kDown, "model.layers.{}.mlp.down_proj.weight"}};

void read_glm(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 131072, .default_kv_heads = 2, .default_head_dim = 128});
  config.norm_eps = keys.number("rms_norm_eps", 1.5625e-7);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.5)});
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = keys.flag_or_true("attention_bias");
}

void read_glm4_moe(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 131072, .default_kv_heads = 8});
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.5)});
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = keys.flag("attention_bias");
  if (keys.flag("use_qk_norm")) config.head_norm = HeadNorm::kPerHead;
  read_corrected_experts(keys, config, {.count = 128, .chosen = 8, .d_ffn = 1408, .shared = 1408});
  read_first_dense(keys, config, 1);
}

}  // namespace

constinit const Family glm4_moe = {
    .name = "GLM-4.5",
    .architectures = {"Glm4MoeForCausalLM"},
    .model_types = {"glm4_moe"},
    .understood_keys = corrected_expert_keys(llama_keys({"attention_bias", "use_qk_norm", "first_k_dense_replace"})),
    .harmless_keys = {"num_nextn_predict_layers", "num_mtp_layers", "router_aux_loss_coef", "output_router_logits"},
    .weights = rows_of({llama_rows(kHeadNorms), kQwenExperts, kRouterCorrection, kSharedExperts}),
    .ignored_tensors = {"model.layers.92.*", "model.layers.46.*"},  // a layer that predicts one more token
    .read = read_glm4_moe};

constinit const Family glm = {.name = "GLM-4",
                              .architectures = {"GlmForCausalLM"},
                              .model_types = {"glm"},
                              .understood_keys = llama_keys({"attention_bias"}),
                              .weights = rows_of({kLlamaOutside, kGlmBefore, kLlamaAttention, kGlmMlp}),
                              .ignored_tensors = kLlamaIgnoredTensors,
                              .read = read_glm};

constinit const Family glm4 = {.name = "GLM-4-0414",
                               .architectures = {"Glm4ForCausalLM"},
                               .model_types = {"glm4"},
                               .understood_keys = llama_keys({"attention_bias"}),
                               .weights = rows_of({kLlamaOutside, kGlmBefore, kGlmBehind, kLlamaAttention, kGlmMlp}),
                               .ignored_tensors = kLlamaIgnoredTensors,
                               .read = read_glm};

}  // namespace lancet
