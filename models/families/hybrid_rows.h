// Weight rows and config keys that families with recurrent mixers share. Most are those of the gated delta rule
// (Qwen3-Next, Qwen3.5).
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "config_reader.h"
#include "lancet/gguf/tiled_heads.h"
#include "rows.h"

namespace lancet {

/// The norm before attention, projections, gates, norms of heads.
inline constexpr WeightRow kHybridAttention[] = {
    {kAttnNorm, "model.layers.{}.input_layernorm.weight"},
    {kQuery, "model.layers.{}.self_attn.q_proj.weight", Layout::kByQueryHead},
    {kAttnGate, "model.layers.{}.self_attn.q_proj.weight", Layout::kByQueryHead},
    {kKey, "model.layers.{}.self_attn.k_proj.weight"},
    {kValue, "model.layers.{}.self_attn.v_proj.weight"},
    {kQueryNorm, "model.layers.{}.self_attn.q_norm.weight"},
    {kKeyNorm, "model.layers.{}.self_attn.k_norm.weight"},
    {kAttnOut, "model.layers.{}.self_attn.o_proj.weight"}};
/// Everything except the projections of the hidden state.
inline constexpr WeightRow kHybridMixer[] = {{kMixerTaps, "model.layers.{}.linear_attn.conv1d.weight"},
                                             {kMixerDecayBias, "model.layers.{}.linear_attn.dt_bias"},
                                             {kMixerDecayScale, "model.layers.{}.linear_attn.A_log"},
                                             {kMixerNorm, "model.layers.{}.linear_attn.norm.weight"},
                                             {kMixerOut, "model.layers.{}.linear_attn.out_proj.weight"}};

/// Returns Llama's keys, and those of mixers.
constexpr KeyList hybrid_keys(std::initializer_list<std::string_view> more) {
  return with_keys(llama_keys({"attention_bias", "layer_types", "full_attention_interval", "attn_output_gate",
                               "linear_conv_kernel_dim", "linear_key_head_dim", "linear_value_head_dim",
                               "linear_num_key_heads", "linear_num_value_heads", kTiledValueHeads}),
                   more);
}

/// Reads which layers have a mixer: those with one of these names in `layer_types` (the others have one of attention's
/// names), or those that `otherwise` gives if it is absent.
std::vector<bool> layers_with_mixer(ConfigReader& keys, int64_t n_layers, std::initializer_list<std::string_view> names,
                                    const std::function<std::vector<bool>(ConfigReader&)>& otherwise);

/// Reads norms, rotary embedding, gates of attention, mixers, and which layers have them.
void read_hybrid_fields(ConfigReader& keys, ModelConfig& config);

}  // namespace lancet
