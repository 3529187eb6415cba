// Phi-3.5-MoE (arXiv 2404.14219): LayerNorms, and experts that are chosen and weighted one after another.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kBiasesOutside[] = {{kFinalNormBias, "model.norm.bias"}, {kHeadBias, "lm_head.bias"}};
constexpr WeightRow kNormsWithBias[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                        {kAttnNormBias, "model.layers.{}.input_layernorm.bias"},
                                        {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                        {kMlpNormBias, "model.layers.{}.post_attention_layernorm.bias"}};

/// Reads LongRoPE with separate factors of cosines and sines for short and for long texts.
RopeConfig read_phimoe_rope(ConfigReader& keys, const ModelConfig& config) {
  RopeConfig rope = read_rope(keys, config, {.theta = 1e6, .other_keys = {"short_mscale", "long_mscale"}});
  if (rope.scaling == RopeConfig::Scaling::kNone) return rope;
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    std::optional<ConfigReader> object = keys.object(key);
    if (!object || !object->has("short_mscale")) continue;
    rope.amplitude = object->above_zero("short_mscale");
    if (object->above_zero("long_mscale") != rope.amplitude)
      object->problem("long_mscale", "the same number as short_mscale");
    return rope;
  }
  keys.problem(keys.has("rope_scaling") ? "rope_scaling" : "rope_parameters", "short_mscale and long_mscale");
  return rope;
}

void read_phimoe(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 131072, .default_kv_heads = 8});
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope = read_phimoe_rope(keys, config);
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.head_bias = keys.flag("lm_head_bias");
  read_windows(keys, config, [](int64_t) { return true; });
  config.experts = read_experts(keys, "num_local_experts", {.count = 16, .chosen = 2});
  config.experts.d_ffn = config.d_ffn;
  config.experts.score = RouterScore::kOneByOne;
  config.experts.nearness = keys.above_zero("router_jitter_noise", 0.01);
  config.experts.layers.assign(static_cast<size_t>(config.n_layers), true);
}

}  // namespace

constinit const Family phimoe = {
    .name = "Phi-3.5-MoE",
    .architectures = {"PhimoeForCausalLM", "PhiMoEForCausalLM"},
    .model_types = {"phimoe"},
    .understood_keys = llama_keys({"attention_bias", "lm_head_bias", "sliding_window", "num_local_experts",
                                   "num_experts_per_tok", "router_jitter_noise", "original_max_position_embeddings"}),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits", "input_jitter_noise", "hidden_dropout"},
    .weights = rows_of({kLlamaOutside, kBiasesOutside, kNormsWithBias, kLlamaAttention, kMixtralExperts}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .experts_parameter = "model.layers.{}.mlp.experts.down_proj",
    .read = read_phimoe};

}  // namespace lancet
