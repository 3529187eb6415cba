#include "rows.h"

namespace lancet {
namespace {

using enum WeightKind;

constexpr WeightRow kOutside[] = {
    {kEmbedding, "model.embed_tokens.weight"}, {kFinalNorm, "model.norm.weight"}, {kHead, "lm_head.weight"}};
constexpr WeightRow kAttention[] = {
    {kQuery, "model.layers.{}.self_attn.q_proj.weight"},   {kKey, "model.layers.{}.self_attn.k_proj.weight"},
    {kValue, "model.layers.{}.self_attn.v_proj.weight"},   {kAttnOut, "model.layers.{}.self_attn.o_proj.weight"},
    {kQueryBias, "model.layers.{}.self_attn.q_proj.bias"}, {kKeyBias, "model.layers.{}.self_attn.k_proj.bias"},
    {kValueBias, "model.layers.{}.self_attn.v_proj.bias"}, {kAttnOutBias, "model.layers.{}.self_attn.o_proj.bias"}};
constexpr WeightRow kMlp[] = {
    {kGate, "model.layers.{}.mlp.gate_proj.weight"}, {kUp, "model.layers.{}.mlp.up_proj.weight"},
    {kDown, "model.layers.{}.mlp.down_proj.weight"}, {kGateBias, "model.layers.{}.mlp.gate_proj.bias"},
    {kUpBias, "model.layers.{}.mlp.up_proj.bias"},   {kDownBias, "model.layers.{}.mlp.down_proj.bias"}};

constexpr WeightRow kQueryKeyNorms[] = {{kQueryNorm, "model.layers.{}.self_attn.q_norm.weight"},
                                        {kKeyNorm, "model.layers.{}.self_attn.k_norm.weight"}};
constexpr WeightRow kBeforeAttention[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"}};
constexpr WeightRow kGptBefore[] = {{kEmbedding, "transformer.wte.weight"},
                                    {kPositions, "transformer.wpe.weight"},
                                    {kFinalNorm, "transformer.ln_f.weight"},
                                    {kFinalNormBias, "transformer.ln_f.bias"},
                                    {kHead, "lm_head.weight"},
                                    {kAttnNorm, "transformer.h.{}.ln_1.weight"},
                                    {kAttnNormBias, "transformer.h.{}.ln_1.bias"}};
constexpr WeightRow kGptAfter[] = {
    {kMlpNorm, "transformer.h.{}.ln_2.weight"},    {kMlpNormBias, "transformer.h.{}.ln_2.bias"},
    {kUp, "transformer.h.{}.mlp.c_fc.weight"},     {kUpBias, "transformer.h.{}.mlp.c_fc.bias"},
    {kDown, "transformer.h.{}.mlp.c_proj.weight"}, {kDownBias, "transformer.h.{}.mlp.c_proj.bias"}};
constexpr WeightRow kBeforeMlp[] = {{kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"}};

}  // namespace

const Rows kLlamaOutside{kOutside};
const Rows kLlamaAttention{kAttention};
const Rows kLlamaMlp{kMlp};
const Rows kHeadNorms{kQueryKeyNorms};
const Rows kGptBeforeAttention{kGptBefore};
const Rows kGptAfterAttention{kGptAfter};

std::vector<std::string_view> with_keys(std::vector<std::string_view> keys,
                                        std::initializer_list<std::string_view> more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<WeightRow> rows_of(std::initializer_list<Rows> parts) {
  std::vector<WeightRow> rows;
  for (const Rows part : parts) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

std::vector<WeightRow> llama_rows(Rows in_attention) {
  return rows_of({kLlamaOutside, kBeforeAttention, kLlamaAttention, in_attention, kBeforeMlp, kLlamaMlp});
}

std::vector<std::string_view> llama_keys(std::initializer_list<std::string_view> more) {
  return with_keys({"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                    "num_key_value_heads", "head_dim", "max_position_embeddings", "rms_norm_eps", "rope_theta",
                    "rope_scaling", "rope_parameters", "partial_rotary_factor", "hidden_act"},
                   more);
}

std::vector<std::string_view> llama_ignored_tensors() {
  return {"model.layers.{}.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"};
}

std::vector<std::string_view> gpt_keys(std::initializer_list<std::string_view> more) {
  return with_keys(
      {"n_embd", "n_inner", "n_layer", "n_head", "n_positions", "layer_norm_epsilon", "activation_function"}, more);
}

std::vector<std::string_view> gpt_harmless_keys(std::initializer_list<std::string_view> more) {
  return with_keys({"n_ctx", "resid_pdrop", "embd_pdrop", "attn_pdrop", "summary_type", "summary_use_proj",
                    "summary_activation", "summary_proj_to_labels", "summary_first_dropout", "gradient_checkpointing"},
                   more);
}

std::vector<std::string_view> gpt_ignored_tensors() {
  return {"transformer.h.{}.attn.bias", "transformer.h.{}.attn.masked_bias", "h.{}.attn.bias", "h.{}.attn.masked_bias"};
}

}  // namespace lancet
