// Weight rows and config keys that several families share.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "lancet/models/families.h"

namespace lancet {

using enum WeightKind;
using Rows = std::span<const WeightRow>;

// Weight rows with the names of Llama's checkpoints.

/// Embedding, final norm, head.
inline constexpr WeightRow kLlamaOutside[] = {
    {kEmbedding, "model.embed_tokens.weight"}, {kFinalNorm, "model.norm.weight"}, {kHead, "lm_head.weight"}};
/// Separate projections and their biases.
inline constexpr WeightRow kLlamaAttention[] = {
    {kQuery, "model.layers.{}.self_attn.q_proj.weight"},   {kKey, "model.layers.{}.self_attn.k_proj.weight"},
    {kValue, "model.layers.{}.self_attn.v_proj.weight"},   {kAttnOut, "model.layers.{}.self_attn.o_proj.weight"},
    {kQueryBias, "model.layers.{}.self_attn.q_proj.bias"}, {kKeyBias, "model.layers.{}.self_attn.k_proj.bias"},
    {kValueBias, "model.layers.{}.self_attn.v_proj.bias"}, {kAttnOutBias, "model.layers.{}.self_attn.o_proj.bias"}};
/// Gate, up, down and their biases.
inline constexpr WeightRow kLlamaMlp[] = {
    {kGate, "model.layers.{}.mlp.gate_proj.weight"}, {kUp, "model.layers.{}.mlp.up_proj.weight"},
    {kDown, "model.layers.{}.mlp.down_proj.weight"}, {kGateBias, "model.layers.{}.mlp.gate_proj.bias"},
    {kUpBias, "model.layers.{}.mlp.up_proj.bias"},   {kDownBias, "model.layers.{}.mlp.down_proj.bias"}};
/// Norms of queries and keys.
inline constexpr WeightRow kHeadNorms[] = {{kQueryNorm, "model.layers.{}.self_attn.q_norm.weight"},
                                           {kKeyNorm, "model.layers.{}.self_attn.k_norm.weight"}};
inline constexpr WeightRow kLlamaAttentionNorm[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"}};
inline constexpr WeightRow kLlamaMlpNorm[] = {{kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"}};

// Weight rows with the names of GPT-2's checkpoints; matrices are stored [out, in].

/// Embedding, positions, final norm, head; the norm before attention.
inline constexpr WeightRow kGptBeforeAttention[] = {{kEmbedding, "transformer.wte.weight"},
                                                    {kPositions, "transformer.wpe.weight"},
                                                    {kFinalNorm, "transformer.ln_f.weight"},
                                                    {kFinalNormBias, "transformer.ln_f.bias"},
                                                    {kHead, "lm_head.weight"},
                                                    {kAttnNorm, "transformer.h.{}.ln_1.weight"},
                                                    {kAttnNormBias, "transformer.h.{}.ln_1.bias"}};
/// Norm, up and down, with their biases.
inline constexpr WeightRow kGptAfterAttention[] = {
    {kMlpNorm, "transformer.h.{}.ln_2.weight"},    {kMlpNormBias, "transformer.h.{}.ln_2.bias"},
    {kUp, "transformer.h.{}.mlp.c_fc.weight"},     {kUpBias, "transformer.h.{}.mlp.c_fc.bias"},
    {kDown, "transformer.h.{}.mlp.c_proj.weight"}, {kDownBias, "transformer.h.{}.mlp.c_proj.bias"}};

constexpr RowList rows_of(std::initializer_list<Rows> parts) {
  RowList rows;
  for (const Rows part : parts) rows.add(part);
  return rows;
}

/// Returns Llama's rows, with `in_attention` inserted after each layer's attention.
constexpr RowList llama_rows(Rows in_attention = {}) {
  return rows_of({kLlamaOutside, kLlamaAttentionNorm, kLlamaAttention, in_attention, kLlamaMlpNorm, kLlamaMlp});
}

/// Concatenates two key lists.
constexpr KeyList with_keys(KeyList keys, std::initializer_list<std::string_view> more) {
  keys.add(more);
  return keys;
}

/// Returns Llama's config keys for sizes, norm, rotary embedding and activation, followed by `more`.
constexpr KeyList llama_keys(std::initializer_list<std::string_view> more = {}) {
  return with_keys({"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                    "num_key_value_heads", "head_dim", "max_position_embeddings", "rms_norm_eps", "rope_theta",
                    "rope_scaling", "rope_parameters", "partial_rotary_factor", "hidden_act"},
                   more);
}

/// Rotary tables that old exporters stored. They are recomputed and therefore ignored.
inline constexpr NameList kLlamaIgnoredTensors = {"model.layers.{}.self_attn.rotary_emb.inv_freq",
                                                  "model.rotary_emb.inv_freq"};

/// Returns the config keys of GPT-2 and GPT-J for sizes, norm and activation, followed by `more`.
constexpr KeyList gpt_keys(std::initializer_list<std::string_view> more) {
  return with_keys(
      {"n_embd", "n_inner", "n_layer", "n_head", "n_positions", "layer_norm_epsilon", "activation_function"}, more);
}
/// Returns training-only config keys of GPT-2 and GPT-J, which are ignored, followed by `more`.
constexpr KeyList gpt_harmless_keys(std::initializer_list<std::string_view> more) {
  return with_keys({"n_ctx", "resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_type", "summary_use_proj",
                    "summary_activation", "summary_proj_to_labels", "summary_first_dropout", "gradient_checkpointing"},
                   more);
}
/// Attention masks that these checkpoints stored. They are ignored.
inline constexpr NameList kGptIgnoredTensors = {"transformer.h.{}.attn.bias", "transformer.h.{}.attn.masked_bias",
                                                "h.{}.attn.bias", "h.{}.attn.masked_bias"};

}  // namespace lancet
