#include "state_space_rows.h"

#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr WeightRow kOutsideRows[] = {
    {kEmbedding, "model.embed_tokens.weight"}, {kFinalNorm, "model.final_layernorm.weight"}, {kHead, "lm_head.weight"}};
constexpr WeightRow kMixerRows[] = {
    {kMixerGate, "model.layers.{}.mamba.in_proj.weight"},  {kMixerValue, "model.layers.{}.mamba.in_proj.weight"},
    {kMixerKey, "model.layers.{}.mamba.in_proj.weight"},   {kMixerQuery, "model.layers.{}.mamba.in_proj.weight"},
    {kMixerStep, "model.layers.{}.mamba.in_proj.weight"},  {kMixerTaps, "model.layers.{}.mamba.conv1d.weight"},
    {kMixerTapsBias, "model.layers.{}.mamba.conv1d.bias"}, {kMixerDecayBias, "model.layers.{}.mamba.dt_bias"},
    {kMixerDecayScale, "model.layers.{}.mamba.A_log"},     {kMixerSkip, "model.layers.{}.mamba.D"},
    {kMixerNorm, "model.layers.{}.mamba.norm.weight"},     {kMixerOut, "model.layers.{}.mamba.out_proj.weight"}};
constexpr WeightRow kNormRow[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"}};
constexpr WeightRow kFeedForwardRows[] = {{kMlpNorm, "model.layers.{}.pre_ff_layernorm.weight"},
                                          {kGate, "model.layers.{}.feed_forward.gate_proj.weight"},
                                          {kUp, "model.layers.{}.feed_forward.up_proj.weight"},
                                          {kDown, "model.layers.{}.feed_forward.down_proj.weight"},
                                          {kGateBias, "model.layers.{}.feed_forward.gate_proj.bias"},
                                          {kUpBias, "model.layers.{}.feed_forward.up_proj.bias"},
                                          {kDownBias, "model.layers.{}.feed_forward.down_proj.bias"}};

/// A number, or {"__float__": "Infinity"}, as transformers writes it; nullopt: neither.
std::optional<double> read_limit(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_object() && value.size() == 1 && value.value("__float__", nlohmann::json()) == "Infinity")
    return std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace

const Rows kStateSpaceOutside{kOutsideRows};
const Rows kStateSpace{kMixerRows};
const Rows kStateSpaceNorm{kNormRow};
const Rows kFeedForward{kFeedForwardRows};

std::vector<std::string_view> state_space_keys(std::initializer_list<std::string_view> more) {
  return with_keys(llama_keys({"attention_bias", "mlp_bias", "layer_types", "mamba_n_heads", "mamba_n_groups",
                               "mamba_d_state", "mamba_d_head", "mamba_d_conv", "mamba_expand", "mamba_conv_bias",
                               "mamba_proj_bias", "time_step_limit"}),
                   more);
}

std::vector<std::string_view> state_space_harmless_keys() {
  return {"mamba_chunk_size",     "num_logits_to_keep", "time_step_min",  "time_step_max",
          "time_step_floor",      "mamba_use_mlp",      "mamba_n_layers", "output_router_logits",
          "router_aux_loss_coef", "z_loss_coefficient"};
}

void read_step_limits(ConfigReader& keys, RecurrenceConfig& mixer) {
  const nlohmann::json* limits = keys.find("time_step_limit");
  if (limits == nullptr) return;
  const bool is_pair = limits->is_array() && limits->size() == 2;
  const std::optional<double> least = is_pair ? read_limit((*limits)[0]) : std::nullopt;
  const std::optional<double> most = is_pair ? read_limit((*limits)[1]) : std::nullopt;
  if (!least || !most || !(*least >= 0) || !(*most > *least))
    return keys.problem("time_step_limit", "two numbers, the first at least 0, the second above it");
  mixer.least_step = *least;
  mixer.most_step = *most;
}

int64_t expanded_size(ConfigReader& keys, const ModelConfig& config) {
  return keys.size("mamba_expand", kMostHeads, 2) * config.d_model;
}

void read_state_space(ConfigReader& keys, ModelConfig& config, int64_t inner) {
  RecurrenceConfig& mixer = config.recurrence;
  mixer.kind = MixerKind::kStateSpace;
  mixer.value_heads = keys.size("mamba_n_heads", kMostHeads, 128);
  mixer.key_heads = keys.size("mamba_n_groups", kMostHeads, 1);
  mixer.key_dim = keys.size("mamba_d_state", kMostHeads, 256);
  const nlohmann::json* head = keys.find("mamba_d_head");
  const bool follows = head == nullptr || *head == "auto";
  mixer.value_dim = follows ? std::max<int64_t>(inner / mixer.value_heads, 1) : keys.size("mamba_d_head", kMostHeads);
  if (mixer.value_size() != inner)
    keys.problem("mamba_n_heads", cat("heads of ", mixer.value_dim, " numbers that are ", inner, " together"));
  if (mixer.value_heads % mixer.key_heads != 0)
    keys.problem("mamba_n_groups", cat("a divisor of mamba_n_heads, ", mixer.value_heads));
  mixer.taps = keys.size("mamba_d_conv", kMostHeads, 4);
  mixer.taps_bias = keys.flag_or_true("mamba_conv_bias");
  if (keys.flag("mamba_proj_bias")) keys.problem("mamba_proj_bias", "false or no such key");
  read_step_limits(keys, mixer);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
}

}  // namespace lancet
