// BLOOM (arXiv 2211.05100): ALiBi, normed embeddings, biases, GELU without a gate.
#include "alibi.h"
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kOfEachHead = Layout::kByHead;
constexpr WeightRow kBloomRows[] = {{kEmbedding, "transformer.word_embeddings.weight"},
                                    {kEmbeddingNorm, "transformer.word_embeddings_layernorm.weight"},
                                    {kEmbeddingNormBias, "transformer.word_embeddings_layernorm.bias"},
                                    {kFinalNorm, "transformer.ln_f.weight"},
                                    {kFinalNormBias, "transformer.ln_f.bias"},
                                    {kHead, "lm_head.weight"},
                                    {kAttnNorm, "transformer.h.{}.input_layernorm.weight"},
                                    {kAttnNormBias, "transformer.h.{}.input_layernorm.bias"},
                                    {kQuery, "transformer.h.{}.self_attention.query_key_value.weight", kOfEachHead},
                                    {kKey, "transformer.h.{}.self_attention.query_key_value.weight", kOfEachHead},
                                    {kValue, "transformer.h.{}.self_attention.query_key_value.weight", kOfEachHead},
                                    {kQueryBias, "transformer.h.{}.self_attention.query_key_value.bias", kOfEachHead},
                                    {kKeyBias, "transformer.h.{}.self_attention.query_key_value.bias", kOfEachHead},
                                    {kValueBias, "transformer.h.{}.self_attention.query_key_value.bias", kOfEachHead},
                                    {kAttnOut, "transformer.h.{}.self_attention.dense.weight"},
                                    {kAttnOutBias, "transformer.h.{}.self_attention.dense.bias"},
                                    {kMlpNorm, "transformer.h.{}.post_attention_layernorm.weight"},
                                    {kMlpNormBias, "transformer.h.{}.post_attention_layernorm.bias"},
                                    {kUp, "transformer.h.{}.mlp.dense_h_to_4h.weight"},
                                    {kUpBias, "transformer.h.{}.mlp.dense_h_to_4h.bias"},
                                    {kDown, "transformer.h.{}.mlp.dense_4h_to_h.weight"},
                                    {kDownBias, "transformer.h.{}.mlp.dense_4h_to_h.bias"}};

constexpr SizeKeys kBloomSizes{
    .ffn = "n_inner", .layers = "n_layer", .heads = "n_head", .positions = "seq_length", .ffn_of_model = 4};

void read_bloom(ConfigReader& keys, ModelConfig& config) {
  SizeKeys names = kBloomSizes;
  if (keys.has("n_embed")) names.model = "n_embed";  // the name in the published files
  if (keys.has("num_attention_heads")) names.heads = "num_attention_heads";
  if (keys.has("num_hidden_layers")) names.layers = "num_hidden_layers";
  read_sizes(keys, config, names);
  config.alibi_slopes = alibi_slopes(config.n_heads);
  read_gpt_fields(keys, config);
  config.normed_embedding = true;
  config.activation = Activation::kGeluTanh;
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
  if (keys.flag("apply_residual_connection_post_layernorm"))
    keys.problem("apply_residual_connection_post_layernorm", "false: the other is not supported");
}

}  // namespace

constinit const Family bloom = {
    .name = "BLOOM",
    .architectures = {"BloomForCausalLM"},
    .model_types = {"bloom"},
    .understood_keys = {"hidden_size", "n_embed", "n_layer", "num_hidden_layers", "n_head", "num_attention_heads",
                        "n_inner", "seq_length", "layer_norm_epsilon", "apply_residual_connection_post_layernorm"},
    .harmless_keys = {"hidden_dropout", "slow_but_exact", "attention_softmax_in_fp32", "bias_dropout_fusion",
                      "masked_softmax_fusion", "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "unk_token_id"},
    .weights = rows_of({kBloomRows}),
    .other_names = {{{"transformer.", ""}}},
    .ignored_tensors = {},
    .read = read_bloom};

}  // namespace lancet
