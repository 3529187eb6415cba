// Apertus (arXiv 2509.14233): normed queries and keys, xIELU without a gate.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kApertusRows[] = {{kAttnNorm, "model.layers.{}.attention_layernorm.weight"},
                                      {kMlpNorm, "model.layers.{}.feedforward_layernorm.weight"},
                                      {kXieluAbove, "model.layers.{}.mlp.act_fn.alpha_p"},
                                      {kXieluBelow, "model.layers.{}.mlp.act_fn.alpha_n"},
                                      {kXieluSlope, "model.layers.{}.mlp.act_fn.beta"},
                                      {kXieluCut, "model.layers.{}.mlp.act_fn.eps"}};

void read_apertus(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.theta = 12e6});
  if (!keys.has("rope_scaling") && !keys.has("rope_parameters"))
    keys.problem("rope_parameters", "an object that says how positions are scaled");
  config.head_norm = HeadNorm::kPerHead;
  config.gated_mlp = false;
  const bool is_xielu = keys.text("hidden_act", "xielu") == "xielu";
  config.activation = is_xielu ? Activation::kXielu : read_activation(keys, "hidden_act", "");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
}

}  // namespace

constinit const Family apertus = {
    .name = "Apertus",
    .architectures = {"ApertusForCausalLM"},
    .model_types = {"apertus"},
    .understood_keys = llama_keys({"attention_bias"}),
    .harmless_keys = {"qk_norm", "post_norm", "mlp_bias"},
    .weights = rows_of({kLlamaOutside, kApertusRows, kLlamaAttention, kHeadNorms, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_apertus};

}  // namespace lancet
