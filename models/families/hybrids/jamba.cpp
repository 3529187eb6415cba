// Jamba (AI21, arXiv 2403.19887): Mamba-1's mixers with additional norms, attention without positions in a few layers,
// and experts in every other layer or in none.
#include <nlohmann/json.hpp>

#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"
#include "families/state_space_rows.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr WeightRow kJambaMixer[] = {{kMixerValue, "model.layers.{}.mamba.in_proj.weight"},
                                     {kMixerGate, "model.layers.{}.mamba.in_proj.weight"},
                                     {kMixerTaps, "model.layers.{}.mamba.conv1d.weight"},
                                     {kMixerTapsBias, "model.layers.{}.mamba.conv1d.bias"},
                                     {kMixerStepDown, "model.layers.{}.mamba.x_proj.weight"},
                                     {kMixerKey, "model.layers.{}.mamba.x_proj.weight"},
                                     {kMixerQuery, "model.layers.{}.mamba.x_proj.weight"},
                                     {kMixerStepNorm, "model.layers.{}.mamba.dt_layernorm.weight"},
                                     {kMixerKeyNorm, "model.layers.{}.mamba.b_layernorm.weight"},
                                     {kMixerQueryNorm, "model.layers.{}.mamba.c_layernorm.weight"},
                                     {kMixerStep, "model.layers.{}.mamba.dt_proj.weight"},
                                     {kMixerDecayBias, "model.layers.{}.mamba.dt_proj.bias"},
                                     {kMixerDecayScale, "model.layers.{}.mamba.A_log"},
                                     {kMixerSkip, "model.layers.{}.mamba.D"},
                                     {kMixerOut, "model.layers.{}.mamba.out_proj.weight"}};
constexpr WeightRow kJambaExperts[] = {{kRouter, "model.layers.{}.feed_forward.router.weight"},
                                       {kGate, "model.layers.{}.feed_forward.experts.{}.gate_proj.weight"},
                                       {kUp, "model.layers.{}.feed_forward.experts.{}.up_proj.weight"},
                                       {kDown, "model.layers.{}.feed_forward.experts.{}.down_proj.weight"},
                                       {kGate, "model.layers.{}.feed_forward.experts.gate_up_proj", Layout::kByExpert},
                                       {kUp, "model.layers.{}.feed_forward.experts.gate_up_proj", Layout::kByExpert},
                                       {kDown, "model.layers.{}.feed_forward.experts.down_proj", Layout::kByExpert}};

/// Returns which layers have something: one in each `period`, the first at `offset`.
std::vector<bool> layers_in_turn(ConfigReader& keys, int64_t n_layers, const std::string& what, int64_t default_period,
                                 int64_t default_offset) {
  const std::string offset_key = what + "_layer_offset";
  const int64_t period = keys.positive(what + "_layer_period", default_period);
  const auto offset = static_cast<int64_t>(keys.at_least(offset_key, 0, static_cast<double>(default_offset)));
  if (offset >= period) keys.problem(offset_key, cat("less than ", what, "_layer_period, ", period));
  std::vector<bool> layers;
  for (int64_t layer = 0; layer < n_layers; ++layer) layers.push_back(layer % period == offset);
  return layers;
}

void read_jamba_mixers(ConfigReader& keys, ModelConfig& config) {
  RecurrenceConfig& mixer = config.recurrence;
  mixer.kind = MixerKind::kSelectiveSpace;
  mixer.value_heads = keys.size("mamba_expand", kMostHeads, 2) * config.d_model;
  mixer.value_dim = mixer.key_heads = 1;
  mixer.key_dim = keys.size("mamba_d_state", kMostHeads, 16);
  const nlohmann::json* rank = keys.find("mamba_dt_rank");
  mixer.step_rank =
      rank == nullptr || *rank == "auto" ? (config.d_model + 15) / 16 : keys.size("mamba_dt_rank", kMostHeads);
  mixer.taps = keys.size("mamba_d_conv", kMostHeads, 4);
  mixer.taps_bias = keys.flag_or_true("mamba_conv_bias");
  if (keys.flag("mamba_proj_bias")) keys.problem("mamba_proj_bias", "false or no such key");
  if (!keys.flag_or_true("mamba_inner_layernorms")) keys.problem("mamba_inner_layernorms", "true or no such key");
  mixer.layers = layers_in_turn(keys, config.n_layers, "attn", 8, 4);
  mixer.layers.flip();
}

void read_jamba(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 262144, .default_kv_heads = 8});
  config.norm_eps = keys.number("rms_norm_eps", 1e-6);
  config.activation = read_activation(keys, "hidden_act", "silu");
  if (config.activation != Activation::kSilu) keys.problem("hidden_act", "silu, which the mixers have too");
  read_jamba_mixers(keys, config);
  const char* count = keys.has("num_local_experts") ? "num_local_experts" : "num_experts";
  const std::vector<bool> layers = layers_in_turn(keys, config.n_layers, "expert", 2, 1);
  if (keys.number(count, 16) == 1) return;
  config.experts = read_experts(keys, count, {.count = 16, .chosen = 2});
  config.experts.d_ffn = config.d_ffn;
  config.experts.layers = layers;
}

}  // namespace

constinit const Family jamba = {
    .name = "Jamba",
    .architectures = {"JambaForCausalLM"},
    .model_types = {"jamba"},
    .understood_keys = {"hidden_size",
                        "intermediate_size",
                        "num_hidden_layers",
                        "num_attention_heads",
                        "num_key_value_heads",
                        "max_position_embeddings",
                        "rms_norm_eps",
                        "hidden_act",
                        "attn_layer_period",
                        "attn_layer_offset",
                        "expert_layer_period",
                        "expert_layer_offset",
                        "num_experts",
                        "num_local_experts",
                        "num_experts_per_tok",
                        "mamba_d_state",
                        "mamba_d_conv",
                        "mamba_expand",
                        "mamba_dt_rank",
                        "mamba_conv_bias",
                        "mamba_proj_bias",
                        "mamba_inner_layernorms",
                        "head_dim"},
    .harmless_keys = {"use_mamba_kernels", "use_mambapy", "use_associative_scan", "output_router_logits",
                      "router_aux_loss_coef", "num_logits_to_keep", "calc_logits_for_entire_prompt", "n_ctx"},
    .weights =
        rows_of({kStateSpaceOutside, kLlamaAttentionNorm, kLlamaAttention, kJambaMixer, kFeedForward, kJambaExperts}),
    .experts_parameter = "model.layers.{}.feed_forward.experts.down_proj",
    .read = read_jamba};

}  // namespace lancet
