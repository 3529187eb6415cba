// Phi-1, 1.5 and 2 (arXiv 2306.11644, 2309.05463): attention and MLP are parallel after one norm; a rotary embedding of
// a part of each head; biases everywhere.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kPhiRows[] = {{kEmbedding, "model.embed_tokens.weight"},
                                  {kFinalNorm, "model.final_layernorm.weight"},
                                  {kFinalNormBias, "model.final_layernorm.bias"},
                                  {kHead, "lm_head.weight"},
                                  {kHeadBias, "lm_head.bias"},
                                  {kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                  {kAttnNormBias, "model.layers.{}.input_layernorm.bias"},
                                  {kQuery, "model.layers.{}.self_attn.q_proj.weight"},
                                  {kKey, "model.layers.{}.self_attn.k_proj.weight"},
                                  {kValue, "model.layers.{}.self_attn.v_proj.weight"},
                                  {kQueryBias, "model.layers.{}.self_attn.q_proj.bias"},
                                  {kKeyBias, "model.layers.{}.self_attn.k_proj.bias"},
                                  {kValueBias, "model.layers.{}.self_attn.v_proj.bias"},
                                  {kQueryNorm, "model.layers.{}.self_attn.q_layernorm.weight"},
                                  {kQueryNormBias, "model.layers.{}.self_attn.q_layernorm.bias"},
                                  {kKeyNorm, "model.layers.{}.self_attn.k_layernorm.weight"},
                                  {kKeyNormBias, "model.layers.{}.self_attn.k_layernorm.bias"},
                                  {kAttnOut, "model.layers.{}.self_attn.dense.weight"},
                                  {kAttnOutBias, "model.layers.{}.self_attn.dense.bias"},
                                  {kUp, "model.layers.{}.mlp.fc1.weight"},
                                  {kUpBias, "model.layers.{}.mlp.fc1.bias"},
                                  {kDown, "model.layers.{}.mlp.fc2.weight"},
                                  {kDownBias, "model.layers.{}.mlp.fc2.bias"}};

void read_phi(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.order = BlockOrder::kParallel;
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_eps", 1e-5);
  config.rope = read_rope(keys, config, {.share = keys.share("partial_rotary_factor", 0.5)});
  if (keys.flag("qk_layernorm")) config.head_norm = HeadNorm::kPerHead;
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "gelu_new");
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = config.head_bias = true;
}

}  // namespace

constinit const Family phi = {.name = "Phi-2",
                              .architectures = {"PhiForCausalLM"},
                              .model_types = {"phi"},
                              .understood_keys = llama_keys({"layer_norm_eps", "qk_layernorm"}),
                              .harmless_keys = {"resid_pdrop", "embd_pdrop"},
                              .weights = rows_of({kPhiRows}),
                              .ignored_tensors = kLlamaIgnoredTensors,
                              .read = read_phi};

}  // namespace lancet
