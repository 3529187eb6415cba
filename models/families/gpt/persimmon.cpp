// Persimmon (Adept 2023): LayerNorm, also for each head of queries and keys, a squared ReLU without a gate, biases.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kAllHeads = Layout::kByHead;
constexpr WeightRow kPersimmonRows[] = {{kEmbedding, "model.embed_tokens.weight"},
                                        {kFinalNorm, "model.final_layernorm.weight"},
                                        {kFinalNormBias, "model.final_layernorm.bias"},
                                        {kHead, "lm_head.weight"},
                                        {kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                        {kAttnNormBias, "model.layers.{}.input_layernorm.bias"},
                                        {kQuery, "model.layers.{}.self_attn.query_key_value.weight", kAllHeads},
                                        {kKey, "model.layers.{}.self_attn.query_key_value.weight", kAllHeads},
                                        {kValue, "model.layers.{}.self_attn.query_key_value.weight", kAllHeads},
                                        {kQueryBias, "model.layers.{}.self_attn.query_key_value.bias", kAllHeads},
                                        {kKeyBias, "model.layers.{}.self_attn.query_key_value.bias", kAllHeads},
                                        {kValueBias, "model.layers.{}.self_attn.query_key_value.bias", kAllHeads},
                                        {kQueryNorm, "model.layers.{}.self_attn.q_layernorm.weight"},
                                        {kQueryNormBias, "model.layers.{}.self_attn.q_layernorm.bias"},
                                        {kKeyNorm, "model.layers.{}.self_attn.k_layernorm.weight"},
                                        {kKeyNormBias, "model.layers.{}.self_attn.k_layernorm.bias"},
                                        {kAttnOut, "model.layers.{}.self_attn.dense.weight"},
                                        {kAttnOutBias, "model.layers.{}.self_attn.dense.bias"},
                                        {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                        {kMlpNormBias, "model.layers.{}.post_attention_layernorm.bias"},
                                        {kUp, "model.layers.{}.mlp.dense_h_to_4h.weight"},
                                        {kUpBias, "model.layers.{}.mlp.dense_h_to_4h.bias"},
                                        {kDown, "model.layers.{}.mlp.dense_4h_to_h.weight"},
                                        {kDownBias, "model.layers.{}.mlp.dense_4h_to_h.bias"}};

void read_persimmon(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config);
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.5)});
  if (keys.flag_or_true("qk_layernorm")) config.head_norm = HeadNorm::kPerHead;
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "relu2");
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
}

}  // namespace

constinit const Family persimmon = {
    .name = "Persimmon",
    .architectures = {"PersimmonForCausalLM"},
    .model_types = {"persimmon"},
    .understood_keys = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                        "max_position_embeddings", "layer_norm_eps", "hidden_act", "qk_layernorm", "rope_theta",
                        "rope_scaling", "rope_parameters", "partial_rotary_factor"},
    .harmless_keys = {"hidden_dropout", "num_key_value_heads"},
    .weights = rows_of({kPersimmonRows}),
    .ignored_tensors = {"model.layers.{}.self_attn.rotary_emb.inv_freq"},
    .read = read_persimmon};

}  // namespace lancet
