// Weight rows and config keys that families with Mamba-2's mixers share (Bamba, Falcon-H1, Granite 4), and some of
// Jamba's and Nemotron-H's.
#pragma once

#include <initializer_list>

#include "config_reader.h"
#include "rows.h"

namespace lancet {

/// Embedding, final norm and head with the names in Bamba.
inline constexpr WeightRow kStateSpaceOutside[] = {
    {kEmbedding, "model.embed_tokens.weight"}, {kFinalNorm, "model.final_layernorm.weight"}, {kHead, "lm_head.weight"}};
/// The mixer, which is called `mamba` in a layer.
inline constexpr WeightRow kStateSpace[] = {
    {kMixerGate, "model.layers.{}.mamba.in_proj.weight"},  {kMixerValue, "model.layers.{}.mamba.in_proj.weight"},
    {kMixerKey, "model.layers.{}.mamba.in_proj.weight"},   {kMixerQuery, "model.layers.{}.mamba.in_proj.weight"},
    {kMixerStep, "model.layers.{}.mamba.in_proj.weight"},  {kMixerTaps, "model.layers.{}.mamba.conv1d.weight"},
    {kMixerTapsBias, "model.layers.{}.mamba.conv1d.bias"}, {kMixerDecayBias, "model.layers.{}.mamba.dt_bias"},
    {kMixerDecayScale, "model.layers.{}.mamba.A_log"},     {kMixerSkip, "model.layers.{}.mamba.D"},
    {kMixerNorm, "model.layers.{}.mamba.norm.weight"},     {kMixerOut, "model.layers.{}.mamba.out_proj.weight"}};
/// Norm and MLP with the names in Bamba and Falcon-H1.
inline constexpr WeightRow kFeedForward[] = {{kMlpNorm, "model.layers.{}.pre_ff_layernorm.weight"},
                                             {kGate, "model.layers.{}.feed_forward.gate_proj.weight"},
                                             {kUp, "model.layers.{}.feed_forward.up_proj.weight"},
                                             {kDown, "model.layers.{}.feed_forward.down_proj.weight"},
                                             {kGateBias, "model.layers.{}.feed_forward.gate_proj.bias"},
                                             {kUpBias, "model.layers.{}.feed_forward.up_proj.bias"},
                                             {kDownBias, "model.layers.{}.feed_forward.down_proj.bias"}};

/// Returns Llama's keys, and those of the mixers.
constexpr KeyList state_space_keys(std::initializer_list<std::string_view> more) {
  return with_keys(llama_keys({"attention_bias", "mlp_bias", "layer_types", "mamba_n_heads", "mamba_n_groups",
                               "mamba_d_state", "mamba_d_head", "mamba_d_conv", "mamba_expand", "mamba_conv_bias",
                               "mamba_proj_bias", "time_step_limit"}),
                   more);
}
/// Keys of the mixers on which no computation depends.
inline constexpr KeyList kStateSpaceHarmlessKeys = {
    "mamba_chunk_size", "num_logits_to_keep", "time_step_min",        "time_step_max",        "time_step_floor",
    "mamba_use_mlp",    "mamba_n_layers",     "output_router_logits", "router_aux_loss_coef", "z_loss_coefficient"};

/// Reads the mixers' sizes; they have `inner` numbers in total. The family decides which layers have a mixer.
void read_state_space(ConfigReader& keys, ModelConfig& config, int64_t inner);
/// Reads time_step_limit.
void read_step_limits(ConfigReader& keys, RecurrenceConfig& mixer);
/// Returns mamba_expand times the hidden size.
int64_t expanded_size(ConfigReader& keys, const ModelConfig& config);

}  // namespace lancet
