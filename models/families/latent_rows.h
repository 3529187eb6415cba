// Weight rows and config keys that families with latent attention share (DeepSeek-V2 and its successors).
#pragma once

#include <initializer_list>

#include "config_reader.h"
#include "rows.h"

namespace lancet {

inline bool has_query_vector(const ModelConfig& config, int64_t) { return config.latent.query_rank > 0; }
inline bool has_split_heads(const ModelConfig& config, int64_t) { return config.latent.is_split; }
inline bool has_joined_heads(const ModelConfig& config, int64_t) { return !config.latent.is_split; }
inline bool lacks_query_vector(const ModelConfig& config, int64_t) { return config.latent.query_rank == 0; }

/// The norms before attention and MLP, attention's projections and their norms.
inline constexpr WeightRow kLatentBlock[] = {
    {kAttnNorm, "model.layers.{}.input_layernorm.weight"},
    {kQueryDown, "model.layers.{}.self_attn.q_a_proj.weight"},
    {kQueryDownNorm, "model.layers.{}.self_attn.q_a_layernorm.weight"},
    {kQuery, "model.layers.{}.self_attn.q_b_proj.weight", Layout::kRows, has_query_vector},
    {kQuery, "model.layers.{}.self_attn.q_proj.weight", Layout::kRows, lacks_query_vector},
    {kKeyValueDown, "model.layers.{}.self_attn.kv_a_proj_with_mqa.weight"},
    {kKeyValueDownNorm, "model.layers.{}.self_attn.kv_a_layernorm.weight"},
    {kKeyValueUp, "model.layers.{}.self_attn.kv_b_proj.weight", Layout::kRows, has_joined_heads},
    {kKeyValueUp, "model.layers.{}.self_attn.{k,v}_b_proj.weight", Layout::kLatentParts, has_split_heads},
    {kAttnOut, "model.layers.{}.self_attn.o_proj.weight"},
    {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"}};

/// Returns Llama's keys, and those of latent attention.
constexpr KeyList latent_keys(std::initializer_list<std::string_view> more) {
  return with_keys(llama_keys({"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "qk_head_dim",
                               "v_head_dim", "rope_interleave", "attention_bias"}),
                   more);
}

/// The values of latent attention for keys that are absent. value_dim 0: the hidden size divided by the number of
/// heads.
struct LatentDefaults {
  LatentConfig latent = {.rank = 512, .query_rank = 1536, .plain_dim = 128, .turned_dim = 64, .value_dim = 128};
  int64_t heads = 128;
  int64_t positions = 4096;
  double norm_eps = 1e-6;
};
/// Reads sizes, norms, rotary embedding, activation and latent attention.
void read_latent_fields(ConfigReader& keys, ModelConfig& config, const LatentDefaults& defaults = {});

}  // namespace lancet
