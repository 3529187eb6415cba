// Nemotron-H and Nemotron 3 (NVIDIA, arXiv 2504.03624): each layer is one of these: a Mamba-2 mixer, attention without
// positions, an MLP, or experts beside an MLP, with a norm before it. MLPs have a squared ReLU and no gate.
#include <algorithm>

#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/rows.h"
#include "families/state_space_rows.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

bool has_mixing(const ModelConfig& config, int64_t layer) { return config.has_mixing(layer); }

bool has_mlp(const ModelConfig& config, int64_t layer) { return config.has_mlp(layer); }

constexpr WeightRow kNemotronRows[] = {{kEmbedding, "model.embeddings.weight"},
                                       {kFinalNorm, "model.norm_f.weight"},
                                       {kHead, "lm_head.weight"},
                                       {kAttnNorm, "model.layers.{}.norm.weight", Layout::kRows, has_mixing},
                                       {kQuery, "model.layers.{}.mixer.q_proj.weight"},
                                       {kKey, "model.layers.{}.mixer.k_proj.weight"},
                                       {kValue, "model.layers.{}.mixer.v_proj.weight"},
                                       {kAttnOut, "model.layers.{}.mixer.o_proj.weight"},
                                       {kMixerGate, "model.layers.{}.mixer.in_proj.weight"},
                                       {kMixerValue, "model.layers.{}.mixer.in_proj.weight"},
                                       {kMixerKey, "model.layers.{}.mixer.in_proj.weight"},
                                       {kMixerQuery, "model.layers.{}.mixer.in_proj.weight"},
                                       {kMixerStep, "model.layers.{}.mixer.in_proj.weight"},
                                       {kMixerTaps, "model.layers.{}.mixer.conv1d.weight"},
                                       {kMixerTapsBias, "model.layers.{}.mixer.conv1d.bias"},
                                       {kMixerDecayBias, "model.layers.{}.mixer.dt_bias"},
                                       {kMixerDecayScale, "model.layers.{}.mixer.A_log"},
                                       {kMixerSkip, "model.layers.{}.mixer.D"},
                                       {kMixerNorm, "model.layers.{}.mixer.norm.weight"},
                                       {kMixerOut, "model.layers.{}.mixer.out_proj.weight"},
                                       {kMlpNorm, "model.layers.{}.norm.weight", Layout::kRows, has_mlp},
                                       {kUp, "model.layers.{}.mixer.up_proj.weight"},
                                       {kDown, "model.layers.{}.mixer.down_proj.weight"},
                                       {kUpBias, "model.layers.{}.mixer.up_proj.bias"},
                                       {kDownBias, "model.layers.{}.mixer.down_proj.bias"},
                                       {kRouter, "model.layers.{}.mixer.gate.weight"},
                                       {kRouterBias, "model.layers.{}.mixer.gate.e_score_correction_bias"},
                                       {kUp, "model.layers.{}.mixer.experts.{}.up_proj.weight"},
                                       {kDown, "model.layers.{}.mixer.experts.{}.down_proj.weight"},
                                       {kUp, "model.layers.{}.mixer.experts.up_proj", Layout::kByExpert},
                                       {kDown, "model.layers.{}.mixer.experts.down_proj", Layout::kByExpert},
                                       {kSharedUp, "model.layers.{}.mixer.shared_experts.up_proj.weight"},
                                       {kSharedDown, "model.layers.{}.mixer.shared_experts.down_proj.weight"}};

/// Returns the type of each layer, in transformers 5's names: from `layers_block_type`, or from a letter for each
/// layer.
std::vector<std::string> nemotron_layers(ConfigReader& keys) {
  std::vector<std::string> parts = keys.texts("layers_block_type");
  for (std::string& part : parts)
    if (part == "mamba" || part == "attention") part = part == "mamba" ? "linear_attention" : "full_attention";
  if (!parts.empty()) return parts;
  for (const char letter : keys.text("hybrid_override_pattern", ""))
    parts.emplace_back(letter == 'M'   ? "linear_attention"
                       : letter == '*' ? "full_attention"
                       : letter == '-' ? "mlp"
                       : letter == 'E' ? "moe"
                                       : std::string(1, letter));
  return parts;
}

/// Reads the number of layers and their types. Returns whether there are experts.
bool read_nemotron_layers(ConfigReader& keys, ModelConfig& config) {
  const std::vector<std::string> parts = nemotron_layers(keys);
  const char* key = keys.has("layers_block_type") ? "layers_block_type" : "hybrid_override_pattern";
  bool is_known = parts.size() <= kMostLayers;
  for (const std::string& part : parts) {
    const bool is_mlp = part == "mlp" || part == "moe";
    is_known = is_known && (is_mlp || part == "linear_attention" || part == "full_attention");
    config.recurrence.layers.push_back(part == "linear_attention");
    config.attention_layers.push_back(part == "full_attention");
    config.mlp_layers.push_back(is_mlp);
    config.experts.layers.push_back(part == "moe");
  }
  if (!is_known || std::ranges::count(config.mlp_layers, true) == 0)
    keys.problem(key, "linear_attention, full_attention, mlp or moe (M, *, - or E) for each layer, and an MLP in some");
  config.n_layers = std::ssize(parts);
  return std::ranges::count(config.experts.layers, true) > 0;
}

void read_nemotron_mixers(ConfigReader& keys, ModelConfig& config) {
  RecurrenceConfig& mixer = config.recurrence;
  mixer.kind = MixerKind::kStateSpace;
  mixer.value_heads = keys.size("mamba_num_heads", kMostHeads, 128);
  mixer.value_dim = keys.size("mamba_head_dim", kMostHeads, 64);
  mixer.key_heads = keys.size("n_groups", kMostHeads, 8);
  mixer.key_dim = keys.size("ssm_state_size", kMostHeads, 128);
  if (mixer.value_heads % mixer.key_heads != 0)
    keys.problem("n_groups", cat("a divisor of mamba_num_heads, ", mixer.value_heads));
  mixer.taps = keys.size("conv_kernel", kMostHeads, 4);
  mixer.taps_bias = keys.flag_or_true("use_conv_bias");
  mixer.norm = MixerNorm::kGateFirst;
  mixer.norm_groups = mixer.key_heads;
  if (keys.text("mamba_hidden_act", "silu") != "silu") keys.problem("mamba_hidden_act", "silu");
  read_step_limits(keys, mixer);
}

void read_nemotron_h(ConfigReader& keys, ModelConfig& config) {
  const bool has_experts = read_nemotron_layers(keys, config);
  const int64_t head_dim = keys.size("attention_head_dim", kMostHeads, 128);  // the name of head_dim in older files
  read_grouped_sizes(keys, config,
                     {.layers = {},
                      .default_positions = 4096,
                      .default_heads = 32,
                      .default_kv_heads = 8,
                      .default_head_dim = head_dim});
  config.norm = NormKind::kRmsPrecise;
  config.norm_eps = keys.number("layer_norm_epsilon", 1e-5);
  config.gated_mlp = false;
  config.activation = read_activation(keys, "mlp_hidden_act", "relu2");
  read_nemotron_mixers(keys, config);
  for (const char* key : {"attention_bias", "use_bias", "residual_in_fp32"})
    if (keys.flag(key)) keys.problem(key, "false or no such key");
  config.mlp_bias = keys.flag("mlp_bias");
  if (config.mlp_bias && has_experts)
    keys.problem("mlp_bias", "false where layers have experts, whose MLP has none here");
  const std::vector<bool> layers = config.experts.layers;
  config.experts.layers.clear();
  if (!has_experts) return;
  if (keys.has("moe_latent_size")) keys.problem("moe_latent_size", "null or no such key: experts of hidden states");
  read_corrected_experts(keys, config, {.count = 8, .chosen = 2, .d_ffn = 7688, .shared = 7688});
  config.experts.shared = keys.size("moe_shared_expert_intermediate_size", kMostWide, 7688);
  config.experts.layers = layers;
}

}  // namespace

constinit const Family nemotron_h = {
    .name = "Nemotron-H",
    .architectures = {"NemotronHForCausalLM"},
    .model_types = {"nemotron_h"},
    .understood_keys = corrected_expert_keys({"hidden_size",
                                              "intermediate_size",
                                              "num_attention_heads",
                                              "num_key_value_heads",
                                              "head_dim",
                                              "attention_head_dim",
                                              "max_position_embeddings",
                                              "layers_block_type",
                                              "hybrid_override_pattern",
                                              "layer_norm_epsilon",
                                              "mlp_hidden_act",
                                              "mamba_hidden_act",
                                              "mamba_num_heads",
                                              "mamba_head_dim",
                                              "n_groups",
                                              "ssm_state_size",
                                              "conv_kernel",
                                              "use_conv_bias",
                                              "time_step_limit",
                                              "attention_bias",
                                              "mlp_bias",
                                              "use_bias",
                                              "residual_in_fp32",
                                              "moe_latent_size",
                                              "moe_shared_expert_intermediate_size"}),
    .harmless_keys = {"num_hidden_layers", "expand", "chunk_size", "time_step_min", "time_step_max", "time_step_floor",
                      "time_step_rank", "rms_norm_eps", "mamba_proj_bias", "mamba_ssm_cache_dtype", "use_mamba_kernels",
                      "num_logits_to_keep", "hidden_dropout", "rescale_prenorm_residual", "moe_shared_expert_overlap",
                      "num_nextn_predict_layers", "mtp_layers_block_type", "mtp_hybrid_override_pattern",
                      "output_router_logits"},
    .weights = rows_of({kNemotronRows}),
    .other_names = {{{"model.", "backbone."}}},
    .ignored_tensors = {"mtp.*"},
    .experts_parameter = "model.layers.{}.mixer.experts.down_proj",
    .refuses_mixer_lora = true,
    .read = read_nemotron_h};

}  // namespace lancet
