// Falcon (arXiv 2311.16867): attention and MLP are parallel, after one norm, or after one norm each. There is one key
// head for all query heads, or one for each group of query heads, stored group by group.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kOfKeys = Layout::kByHead;

bool has_two_norms(const ModelConfig& config, int64_t) {
  return config.order == BlockOrder::kParallel && config.mlp_norm;
}
bool has_one_norm(const ModelConfig& config, int64_t layer) { return !has_two_norms(config, layer); }

constexpr WeightRow kFalconNorms[] = {
    {kAttnNorm, "transformer.h.{}.input_layernorm.weight", Layout::kRows, has_one_norm},
    {kAttnNorm, "transformer.h.{}.ln_attn.weight", Layout::kRows, has_two_norms},
    {kAttnNormBias, "transformer.h.{}.input_layernorm.bias", Layout::kRows, has_one_norm},
    {kAttnNormBias, "transformer.h.{}.ln_attn.bias", Layout::kRows, has_two_norms},
    {kMlpNorm, "transformer.h.{}.ln_mlp.weight", Layout::kRows, has_two_norms},
    {kMlpNorm, "transformer.h.{}.post_attention_layernorm.weight", Layout::kRows, has_one_norm},
    {kMlpNormBias, "transformer.h.{}.ln_mlp.bias", Layout::kRows, has_two_norms},
    {kMlpNormBias, "transformer.h.{}.post_attention_layernorm.bias", Layout::kRows, has_one_norm}};
constexpr WeightRow kFalconRows[] = {{kEmbedding, "transformer.word_embeddings.weight"},
                                     {kFinalNorm, "transformer.ln_f.weight"},
                                     {kFinalNormBias, "transformer.ln_f.bias"},
                                     {kHead, "lm_head.weight"},
                                     {kQuery, "transformer.h.{}.self_attention.query_key_value.weight", kOfKeys},
                                     {kKey, "transformer.h.{}.self_attention.query_key_value.weight", kOfKeys},
                                     {kValue, "transformer.h.{}.self_attention.query_key_value.weight", kOfKeys},
                                     {kQueryBias, "transformer.h.{}.self_attention.query_key_value.bias", kOfKeys},
                                     {kKeyBias, "transformer.h.{}.self_attention.query_key_value.bias", kOfKeys},
                                     {kValueBias, "transformer.h.{}.self_attention.query_key_value.bias", kOfKeys},
                                     {kAttnOut, "transformer.h.{}.self_attention.dense.weight"},
                                     {kAttnOutBias, "transformer.h.{}.self_attention.dense.bias"},
                                     {kUp, "transformer.h.{}.mlp.dense_h_to_4h.weight"},
                                     {kUpBias, "transformer.h.{}.mlp.dense_h_to_4h.bias"},
                                     {kDown, "transformer.h.{}.mlp.dense_4h_to_h.weight"},
                                     {kDownBias, "transformer.h.{}.mlp.dense_4h_to_h.bias"}};

void read_falcon(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config, {.ffn = "ffn_hidden_size", .ffn_of_model = 4});
  const bool is_new = keys.flag("new_decoder_architecture"), is_parallel = keys.flag_or_true("parallel_attn");
  if (is_new)
    config.n_kv_heads = keys.size("num_kv_heads", kMostHeads, config.n_heads);
  else if (keys.flag_or_true("multi_query"))
    config.n_kv_heads = 1;
  if (is_new && !is_parallel) keys.problem("parallel_attn", "true beside new_decoder_architecture");
  config.order = is_parallel ? BlockOrder::kParallel : BlockOrder::kSequential;
  config.mlp_norm = !is_parallel || (is_new && keys.positive("num_ln_in_parallel_attn", 2) == 2);
  read_gpt_fields(keys, config);
  config.activation = read_activation(keys, "activation", "gelu");
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = keys.flag("bias");
  config.rope = read_rope(keys, config);
  if (keys.flag("alibi")) keys.problem("alibi", "false: the other, Falcon-RW's, is not supported");
}

}  // namespace

constinit const Family falcon = {
    .name = "Falcon",
    .architectures = {"FalconForCausalLM"},
    .model_types = {"falcon"},
    .understood_keys = {"hidden_size", "ffn_hidden_size", "num_hidden_layers", "num_attention_heads", "num_kv_heads",
                        "max_position_embeddings", "layer_norm_epsilon", "new_decoder_architecture", "parallel_attn",
                        "multi_query", "num_ln_in_parallel_attn", "bias", "alibi", "activation", "rope_theta",
                        "rope_scaling", "rope_parameters"},
    .harmless_keys = {"hidden_dropout", "apply_residual_connection_post_layernorm", "n_embed", "n_head", "n_layer"},
    .weights = rows_of({kFalconRows, kFalconNorms}),
    .ignored_tensors = {"transformer.h.{}.self_attention.rotary_emb.inv_freq"},
    .read = read_falcon};

}  // namespace lancet
