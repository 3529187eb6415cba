// Bamba (IBM 2024): Mamba-2's mixers; a few layers have attention, with a rotary embedding of half of each head.
// Falcon-H1 (TII, arXiv 2507.22448): each layer has both in parallel, with multipliers for nearly everything.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"
#include "families/state_space_rows.h"

namespace lancet {
namespace {

void read_shared(ConfigReader& keys, ModelConfig& config, int64_t default_positions) {
  read_grouped_sizes(keys, config, {.default_positions = default_positions, .default_kv_heads = 8});
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.activation = read_activation(keys, "hidden_act", "silu");
}

void read_bamba(ConfigReader& keys, ModelConfig& config) {
  read_shared(keys, config, 262144);
  config.rope = read_rope(keys, config, {.share = 0.5});
  read_state_space(keys, config, expanded_size(keys, config));
  RecurrenceConfig& mixer = config.recurrence;
  mixer.norm = MixerNorm::kGateFirst;
  mixer.layers.assign(static_cast<size_t>(config.n_layers), true);
  for (const int64_t layer : keys.indices("attn_layer_indices", config.n_layers))
    mixer.layers[static_cast<size_t>(layer)] = false;
}

/// Reads `count` multipliers. All are 1 if the key is absent.
std::vector<double> multipliers(ConfigReader& keys, std::string_view key, int64_t count) {
  std::vector<double> factors = keys.has(key) ? keys.numbers(key, count) : std::vector<double>();
  factors.resize(static_cast<size_t>(count), 1);
  return factors;
}

void read_falcon_h1(ConfigReader& keys, ModelConfig& config) {
  read_shared(keys, config, 8192);
  config.rope = read_rope(keys, config);
  const bool has_size = keys.has("mamba_d_ssm") || !keys.is_null("mamba_d_ssm");
  read_state_space(keys, config, has_size ? keys.size("mamba_d_ssm", kMostWide, 1024) : expanded_size(keys, config));
  RecurrenceConfig& mixer = config.recurrence;
  mixer.has_attention = true;
  mixer.layers.assign(static_cast<size_t>(config.n_layers), true);
  if (keys.flag("mamba_rms_norm")) {
    mixer.norm = keys.flag_or_true("mamba_norm_before_gate") ? MixerNorm::kNormFirst : MixerNorm::kGateFirst;
    mixer.norm_groups = mixer.key_heads;
  }
  if (keys.flag("projectors_bias")) keys.problem("projectors_bias", "false or no such key");
  const double in = keys.above_zero("ssm_in_multiplier", 1);
  const std::vector<double> of_parts = multipliers(keys, "ssm_multipliers", 5);
  mixer.factors = {.gate = in * of_parts[0],
                   .value = in * of_parts[1],
                   .key = in * of_parts[2],
                   .query = in * of_parts[3],
                   .step = in * of_parts[4],
                   .out = keys.above_zero("ssm_out_multiplier", 1)};
  mixer.attention_factor = keys.above_zero("attention_out_multiplier", 1);
  config.attention_in_scale = keys.above_zero("attention_in_multiplier", 1);
  config.attention_scale = keys.above_zero("key_multiplier", 1) / std::sqrt(static_cast<double>(config.head_dim));
  const std::vector<double> of_mlp = multipliers(keys, "mlp_multipliers", 2);
  config.gate_scale = of_mlp[0];
  config.mlp_out_scale = of_mlp[1];
  config.embedding_scale = keys.above_zero("embedding_multiplier", 1);
  config.logits_scale = keys.above_zero("lm_head_multiplier", 1);
}

}  // namespace

constinit const Family bamba = {
    .name = "Bamba",
    .architectures = {"BambaForCausalLM"},
    .model_types = {"bamba"},
    .understood_keys = state_space_keys({"attn_layer_indices"}),
    .harmless_keys = kStateSpaceHarmlessKeys,
    .weights = rows_of({kStateSpaceOutside, kLlamaAttentionNorm, kLlamaAttention, kStateSpace, kFeedForward}),
    .read = read_bamba};

constinit const Family falcon_h1 = {
    .name = "Falcon-H1",
    .architectures = {"FalconH1ForCausalLM"},
    .model_types = {"falcon_h1"},
    .understood_keys = state_space_keys({"mamba_d_ssm", "mamba_rms_norm", "mamba_norm_before_gate", "projectors_bias",
                                         "ssm_in_multiplier", "ssm_multipliers", "ssm_out_multiplier",
                                         "attention_in_multiplier", "attention_out_multiplier", "key_multiplier",
                                         "mlp_multipliers", "embedding_multiplier", "lm_head_multiplier"}),
    .harmless_keys = kStateSpaceHarmlessKeys,
    .weights = rows_of({kStateSpaceOutside, kLlamaAttentionNorm, kLlamaAttention, kStateSpace, kFeedForward}),
    .refuses_mixer_lora = true,
    .read = read_falcon_h1};

}  // namespace lancet
