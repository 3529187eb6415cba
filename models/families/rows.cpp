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

}  // namespace

const Rows kLlamaOutside{kOutside};
const Rows kLlamaAttention{kAttention};
const Rows kLlamaMlp{kMlp};
const WeightRow kLlamaAttnNorm{kAttnNorm, "model.layers.{}.input_layernorm.weight"};
const WeightRow kLlamaMlpNorm{kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"};

std::vector<WeightRow> rows_of(std::initializer_list<Rows> parts) {
  std::vector<WeightRow> rows;
  for (const Rows part : parts) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

std::vector<std::string_view> llama_keys(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> keys{
      "hidden_size",         "intermediate_size", "num_hidden_layers",       "num_attention_heads",
      "num_key_value_heads", "head_dim",          "max_position_embeddings", "rms_norm_eps",
      "rope_theta",          "rope_scaling",      "rope_parameters",         "hidden_act"};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<std::string_view> llama_ignored_tensors() {
  return {"model.layers.{}.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"};
}

}  // namespace lancet
