// GLM-4 9B (arXiv 2406.12793) and GLM-4-0414, which has norms behind the blocks too: a rotary embedding of adjacent
// pairs of a part of each head, fused gate and up. GLM-4.5 and 4.6 (arXiv 2508.06471) have Llama's block, with experts
// in all but the first layers.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr WeightRow kGlmBefore[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                    {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"}};
constexpr WeightRow kGlmBehind[] = {{kAttnPostNorm, "model.layers.{}.post_self_attn_layernorm.weight"},
                                    {kMlpPostNorm, "model.layers.{}.post_mlp_layernorm.weight"}};
constexpr WeightRow kGlmMlp[] = {{kGate, "model.layers.{}.mlp.gate_up_proj.weight"},
                                 {kUp, "model.layers.{}.mlp.gate_up_proj.weight"},
                                 {kDown, "model.layers.{}.mlp.down_proj.weight"}};

constexpr WeightRow kGlmRouterBias[] = {{kRouterBias, "model.layers.{}.mlp.gate.e_score_correction_bias"}};

void read_glm(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 131072, .default_kv_heads = 2, .default_head_dim = 128});
  config.norm_eps = keys.number("rms_norm_eps", 1.5625e-7);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.5)});
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = keys.flag_or_true("attention_bias");
}

ExpertsConfig read_glm_experts(ConfigReader& keys, int64_t n_layers) {
  ExpertsConfig experts = read_experts(keys, keys.has("num_local_experts") ? "num_local_experts" : "n_routed_experts",
                                       {.count = 128, .chosen = 8});
  experts.d_ffn = keys.size("moe_intermediate_size", kMostWide, 1408);
  experts.score = RouterScore::kSigmoid;
  experts.choice_bias = true;
  experts.sums_to_one = keys.flag_or_true("norm_topk_prob");
  experts.added_to_sum = 1e-20;
  experts.scale = keys.above_zero("routed_scaling_factor", 1);
  experts.groups = keys.size("n_group", kMostExperts, 1);
  experts.groups_chosen = keys.size("topk_group", kMostExperts, 1);
  if (experts.groups > 1 && (experts.count % experts.groups != 0 || experts.count < 2 * experts.groups))
    keys.problem("n_group", cat("a divisor of the ", experts.count, " experts that leaves two or more in a group"));
  if (experts.groups_chosen > experts.groups) keys.problem("topk_group", cat("at most n_group, ", experts.groups));
  experts.shared = experts.d_ffn * keys.size("n_shared_experts", kMostExperts, 1);
  const auto n_dense = static_cast<int64_t>(keys.at_least("first_k_dense_replace", 0, 1));
  for (int64_t layer = 0; layer < n_layers; ++layer) experts.layers.push_back(layer >= n_dense);
  return experts;
}

void read_glm4_moe(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 131072, .default_kv_heads = 8});
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.5)});
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = keys.flag("attention_bias");
  if (keys.flag("use_qk_norm")) config.head_norm = HeadNorm::kPerHead;
  config.experts = read_glm_experts(keys, config.n_layers);
}

}  // namespace

Family glm4_moe() {
  return {
      .name = "GLM-4.5",
      .architectures = {"Glm4MoeForCausalLM"},
      .model_types = {"glm4_moe"},
      .understood_keys =
          llama_keys({"attention_bias", "use_qk_norm", "n_routed_experts", "num_local_experts", "num_experts_per_tok",
                      "moe_intermediate_size", "norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group",
                      "n_shared_experts", "first_k_dense_replace"}),
      .harmless_keys = {"num_nextn_predict_layers", "num_mtp_layers", "router_aux_loss_coef", "output_router_logits"},
      .weights = rows_of({llama_rows(kHeadNorms), kQwenExperts, kGlmRouterBias, kSharedExperts}),
      .ignored_tensors = {"model.layers.92.*", "model.layers.46.*"},  // a layer that predicts one token more
      .read = read_glm4_moe};
}

Family glm() {
  return {.name = "GLM-4",
          .architectures = {"GlmForCausalLM"},
          .model_types = {"glm"},
          .understood_keys = llama_keys({"attention_bias"}),
          .weights = rows_of({kLlamaOutside, kGlmBefore, kLlamaAttention, kGlmMlp}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_glm};
}

Family glm4() {
  return {.name = "GLM-4-0414",
          .architectures = {"Glm4ForCausalLM"},
          .model_types = {"glm4"},
          .understood_keys = llama_keys({"attention_bias"}),
          .weights = rows_of({kLlamaOutside, kGlmBefore, kGlmBehind, kLlamaAttention, kGlmMlp}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_glm};
}

}  // namespace lancet
