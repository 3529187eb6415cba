// StableLM 3B and StableLM 2 1.6B (Stability AI 2023, arXiv 2402.17834): Llama's block with LayerNorm and a rotary
// embedding of a part of each head.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kStableNorms[] = {{kFinalNormBias, "model.norm.bias"},
                                      {kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                      {kAttnNormBias, "model.layers.{}.input_layernorm.bias"},
                                      {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                      {kMlpNormBias, "model.layers.{}.post_attention_layernorm.bias"}};

void read_stablelm(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.25)});
  config.qkv_bias = keys.flag("use_qkv_bias");
  config.activation = read_activation(keys, "hidden_act", "silu");
  for (const std::string_view key : {"qk_layernorm", "use_parallel_residual"})  // only StableLM 2 12B has these
    if (keys.flag(key)) keys.problem(key, "false: the other is not supported");
}

}  // namespace

constinit const Family stablelm = {
    .name = "StableLM",
    .architectures = {"StableLmForCausalLM"},
    .model_types = {"stablelm"},
    .understood_keys = llama_keys({"layer_norm_eps", "use_qkv_bias", "qk_layernorm", "use_parallel_residual"}),
    .harmless_keys = {"hidden_dropout"},
    .weights = rows_of({kLlamaOutside, kStableNorms, kLlamaAttention, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_stablelm};

}  // namespace lancet
