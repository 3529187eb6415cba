// StarCoder2 (arXiv 2402.19173): LayerNorm, biases, an MLP without a gate.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kStarRows[] = {{kFinalNormBias, "model.norm.bias"},
                                   {kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                   {kAttnNormBias, "model.layers.{}.input_layernorm.bias"},
                                   {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                   {kMlpNormBias, "model.layers.{}.post_attention_layernorm.bias"},
                                   {kUp, "model.layers.{}.mlp.c_fc.weight"},
                                   {kUpBias, "model.layers.{}.mlp.c_fc.bias"},
                                   {kDown, "model.layers.{}.mlp.c_proj.weight"},
                                   {kDownBias, "model.layers.{}.mlp.c_proj.bias"}};

void read_starcoder2(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 4096, .default_kv_heads = 2});
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("norm_epsilon", 1e-5);
  config.rope = read_rope(keys, config);
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "gelu_pytorch_tanh");
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = keys.flag_or_true("use_bias");
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
  read_windows(keys, config, [](int64_t) { return true; });
}

}  // namespace

constinit const Family starcoder2 = {
    .name = "StarCoder2",
    .architectures = {"Starcoder2ForCausalLM"},
    .model_types = {"starcoder2"},
    .understood_keys = llama_keys({"norm_epsilon", "use_bias", "sliding_window"}),
    .harmless_keys = {"residual_dropout", "embedding_dropout", "mlp_type", "norm_type", "activation_function",
                      "layer_norm_epsilon", "scale_attn_weights", "attention_softmax_in_fp32",
                      "scale_attention_softmax_in_fp32"},
    .weights = rows_of({kLlamaOutside, kLlamaAttention, kStarRows}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_starcoder2};

}  // namespace lancet
