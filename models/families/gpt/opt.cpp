// OPT (arXiv 2205.01068): learned positions that begin in the table's third row, LayerNorm before the blocks, ReLU.
// BioGPT (arXiv 2210.10341) has the same block with GELU and scaled embeddings.
#include <cmath>

#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kOptRows[] = {{kEmbedding, "model.decoder.embed_tokens.weight"},
                                  {kPositions, "model.decoder.embed_positions.weight"},
                                  {kFinalNorm, "model.decoder.final_layer_norm.weight"},
                                  {kFinalNormBias, "model.decoder.final_layer_norm.bias"},
                                  {kHead, "lm_head.weight"},
                                  {kAttnNorm, "model.decoder.layers.{}.self_attn_layer_norm.weight"},
                                  {kAttnNormBias, "model.decoder.layers.{}.self_attn_layer_norm.bias"},
                                  {kQuery, "model.decoder.layers.{}.self_attn.q_proj.weight"},
                                  {kKey, "model.decoder.layers.{}.self_attn.k_proj.weight"},
                                  {kValue, "model.decoder.layers.{}.self_attn.v_proj.weight"},
                                  {kAttnOut, "model.decoder.layers.{}.self_attn.out_proj.weight"},
                                  {kQueryBias, "model.decoder.layers.{}.self_attn.q_proj.bias"},
                                  {kKeyBias, "model.decoder.layers.{}.self_attn.k_proj.bias"},
                                  {kValueBias, "model.decoder.layers.{}.self_attn.v_proj.bias"},
                                  {kAttnOutBias, "model.decoder.layers.{}.self_attn.out_proj.bias"},
                                  {kMlpNorm, "model.decoder.layers.{}.final_layer_norm.weight"},
                                  {kMlpNormBias, "model.decoder.layers.{}.final_layer_norm.bias"},
                                  {kUp, "model.decoder.layers.{}.fc1.weight"},
                                  {kUpBias, "model.decoder.layers.{}.fc1.bias"},
                                  {kDown, "model.decoder.layers.{}.fc2.weight"},
                                  {kDownBias, "model.decoder.layers.{}.fc2.bias"}};
constexpr WeightRow kBioGptRows[] = {{kEmbedding, "biogpt.embed_tokens.weight"},
                                     {kPositions, "biogpt.embed_positions.weight"},
                                     {kFinalNorm, "biogpt.layer_norm.weight"},
                                     {kFinalNormBias, "biogpt.layer_norm.bias"},
                                     {kHead, "output_projection.weight"},
                                     {kAttnNorm, "biogpt.layers.{}.self_attn_layer_norm.weight"},
                                     {kAttnNormBias, "biogpt.layers.{}.self_attn_layer_norm.bias"},
                                     {kQuery, "biogpt.layers.{}.self_attn.q_proj.weight"},
                                     {kKey, "biogpt.layers.{}.self_attn.k_proj.weight"},
                                     {kValue, "biogpt.layers.{}.self_attn.v_proj.weight"},
                                     {kAttnOut, "biogpt.layers.{}.self_attn.out_proj.weight"},
                                     {kQueryBias, "biogpt.layers.{}.self_attn.q_proj.bias"},
                                     {kKeyBias, "biogpt.layers.{}.self_attn.k_proj.bias"},
                                     {kValueBias, "biogpt.layers.{}.self_attn.v_proj.bias"},
                                     {kAttnOutBias, "biogpt.layers.{}.self_attn.out_proj.bias"},
                                     {kMlpNorm, "biogpt.layers.{}.final_layer_norm.weight"},
                                     {kMlpNormBias, "biogpt.layers.{}.final_layer_norm.bias"},
                                     {kUp, "biogpt.layers.{}.fc1.weight"},
                                     {kUpBias, "biogpt.layers.{}.fc1.bias"},
                                     {kDown, "biogpt.layers.{}.fc2.weight"},
                                     {kDownBias, "biogpt.layers.{}.fc2.bias"}};

constexpr int64_t kRowsBefore = 2;  // unused rows of the table of positions

void read_opt_block(ConfigReader& keys, ModelConfig& config) {
  config.norm = NormKind::kLayer;
  config.norm_eps = 1e-5;
  config.first_position = kRowsBefore;
  config.gated_mlp = false;
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
}

/// Only OPT-350M has norms after its blocks, and narrower embeddings.
void read_opt(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config, {.ffn = "ffn_dim"});
  read_opt_block(keys, config);
  config.activation = read_activation(keys, "activation_function", "relu");
  for (const std::string_view key : {"do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine"})
    if (!keys.flag_or_true(key)) keys.problem(key, "true: the other is not supported");
  if (keys.flag("_remove_final_layer_norm"))
    keys.problem("_remove_final_layer_norm", "false: the other is not supported");
  if (keys.positive("word_embed_proj_dim", config.d_model) != config.d_model)
    keys.problem("word_embed_proj_dim", "hidden_size: projected embeddings are not supported");
}

void read_biogpt(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config, {.default_positions = 1024});
  read_opt_block(keys, config);
  config.activation = read_activation(keys, "hidden_act", "gelu");
  if (keys.flag_or_true("scale_embedding")) config.embedding_scale = std::sqrt(static_cast<double>(config.d_model));
}

}  // namespace

constinit const Family opt = {
    .name = "OPT",
    .architectures = {"OPTForCausalLM"},
    .model_types = {"opt"},
    .understood_keys = {"hidden_size", "ffn_dim", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
                        "activation_function", "do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine",
                        "_remove_final_layer_norm", "word_embed_proj_dim"},
    .harmless_keys = {"dropout", "activation_dropout", "layerdrop", "init_std", "prefix"},
    .weights = rows_of({kOptRows}),
    .other_names = {{{"model.decoder.", "decoder."}}},
    .ignored_tensors = {},
    .read = read_opt};

constinit const Family biogpt = {
    .name = "BioGPT",
    .architectures = {"BioGptForCausalLM"},
    .model_types = {"biogpt"},
    .understood_keys = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                        "max_position_embeddings", "hidden_act", "scale_embedding"},
    .harmless_keys = {"layer_norm_eps", "hidden_dropout_prob", "attention_probs_dropout_prob", "layerdrop",
                      "activation_dropout"},
    .weights = rows_of({kBioGptRows}),
    .ignored_tensors = {},
    .read = read_biogpt};

}  // namespace lancet
