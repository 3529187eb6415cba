// GPT-NeoX and Pythia (arXiv 2204.06745, 2304.01373): attention and MLP are parallel, each after its own norm. Queries,
// keys and values are fused head by head. The rotary embedding rotates a part of each head.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kHeads = Layout::kByHead;
constexpr WeightRow kNeoxRows[] = {{kEmbedding, "gpt_neox.embed_in.weight"},
                                   {kFinalNorm, "gpt_neox.final_layer_norm.weight"},
                                   {kFinalNormBias, "gpt_neox.final_layer_norm.bias"},
                                   {kHead, "embed_out.weight"},
                                   {kAttnNorm, "gpt_neox.layers.{}.input_layernorm.weight"},
                                   {kAttnNormBias, "gpt_neox.layers.{}.input_layernorm.bias"},
                                   {kQuery, "gpt_neox.layers.{}.attention.query_key_value.weight", kHeads},
                                   {kKey, "gpt_neox.layers.{}.attention.query_key_value.weight", kHeads},
                                   {kValue, "gpt_neox.layers.{}.attention.query_key_value.weight", kHeads},
                                   {kQueryBias, "gpt_neox.layers.{}.attention.query_key_value.bias", kHeads},
                                   {kKeyBias, "gpt_neox.layers.{}.attention.query_key_value.bias", kHeads},
                                   {kValueBias, "gpt_neox.layers.{}.attention.query_key_value.bias", kHeads},
                                   {kAttnOut, "gpt_neox.layers.{}.attention.dense.weight"},
                                   {kAttnOutBias, "gpt_neox.layers.{}.attention.dense.bias"},
                                   {kMlpNorm, "gpt_neox.layers.{}.post_attention_layernorm.weight"},
                                   {kMlpNormBias, "gpt_neox.layers.{}.post_attention_layernorm.bias"},
                                   {kUp, "gpt_neox.layers.{}.mlp.dense_h_to_4h.weight"},
                                   {kUpBias, "gpt_neox.layers.{}.mlp.dense_h_to_4h.bias"},
                                   {kDown, "gpt_neox.layers.{}.mlp.dense_4h_to_h.weight"},
                                   {kDownBias, "gpt_neox.layers.{}.mlp.dense_4h_to_h.bias"}};

/// As in transformers, rope_theta counts only inside rope_parameters.
RopeConfig read_neox_rope(ConfigReader& keys, const ModelConfig& config) {
  const RopeDefaults defaults{.theta = keys.above_zero("rotary_emb_base", 1e4),
                              .share = keys.share("rotary_pct", 0.25)};
  return read_rope_under(keys, config, defaults);
}

void read_gpt_neox(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config);
  config.order = keys.flag_or_true("use_parallel_residual") ? BlockOrder::kParallel : BlockOrder::kSequential;
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_eps", 1e-5);
  config.rope = read_neox_rope(keys, config);
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "gelu");
  config.qkv_bias = config.attention_out_bias = keys.flag_or_true("attention_bias");
  config.mlp_bias = true;
}

}  // namespace

constinit const Family gpt_neox = {
    .name = "GPT-NeoX",
    .architectures = {"GPTNeoXForCausalLM"},
    .model_types = {"gpt_neox"},
    .understood_keys = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                        "max_position_embeddings", "layer_norm_eps", "hidden_act", "rotary_pct", "rotary_emb_base",
                        "rope_scaling", "rope_parameters", "use_parallel_residual", "attention_bias"},
    .harmless_keys = {"classifier_dropout", "hidden_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob",
                      "gradient_checkpointing", "num_steps", "rope_theta"},
    .weights = rows_of({kNeoxRows}),
    .other_names = {{{"embed_out.", "lm_head."}}},
    .ignored_tensors = {"gpt_neox.layers.{}.attention.bias", "gpt_neox.layers.{}.attention.masked_bias",
                        "gpt_neox.layers.{}.attention.rotary_emb.inv_freq", "gpt_neox.rotary_emb.inv_freq"},
    .read = read_gpt_neox};

}  // namespace lancet
