// Nemotron-4 and Minitron (arXiv 2402.16819, 2407.14679): LayerNorm with factor 1 + w, a squared ReLU without a gate, a
// rotary embedding of half of each head.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kLayerNorms[] = {{kFinalNormBias, "model.norm.bias"},
                                     {kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                     {kAttnNormBias, "model.layers.{}.input_layernorm.bias"},
                                     {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                     {kMlpNormBias, "model.layers.{}.post_attention_layernorm.bias"}};

void read_nemotron(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm = NormKind::kLayerPlusOne;
  config.norm_eps = keys.number("norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.5)});
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "relu2");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
}

void read_jais2(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_eps", 1e-5);
  config.rope = read_rope(keys, config);
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "relu2");
  config.qkv_bias = config.attention_out_bias = keys.flag_or_true("attention_bias");
  config.mlp_bias = keys.flag_or_true("mlp_bias");
}

}  // namespace

constinit const Family nemotron = {.name = "Nemotron",
                                   .architectures = {"NemotronForCausalLM"},
                                   .model_types = {"nemotron"},
                                   .understood_keys = llama_keys({"norm_eps", "attention_bias", "mlp_bias"}),
                                   .weights = rows_of({kLlamaOutside, kLayerNorms, kLlamaAttention, kLlamaMlp}),
                                   .ignored_tensors = kLlamaIgnoredTensors,
                                   .read = read_nemotron};

/// Jais 2 (2025): the usual LayerNorm, a rotary embedding of whole heads, biases.
constinit const Family jais2 = {.name = "Jais 2",
                                .architectures = {"Jais2ForCausalLM"},
                                .model_types = {"jais2"},
                                .understood_keys = llama_keys({"layer_norm_eps", "attention_bias", "mlp_bias"}),
                                .weights = rows_of({kLlamaOutside, kLayerNorms, kLlamaAttention, kLlamaMlp}),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_jais2};

}  // namespace lancet
