// GPT-2 (Radford et al. 2019): learned positions, LayerNorm, an MLP without a gate; matrices are stored [in, out].
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr auto kIn = Layout::kColumns;
constexpr WeightRow kGpt2Rows[] = {{kEmbedding, "transformer.wte.weight"},
                                   {kPositions, "transformer.wpe.weight"},
                                   {kFinalNorm, "transformer.ln_f.weight"},
                                   {kFinalNormBias, "transformer.ln_f.bias"},
                                   {kHead, "lm_head.weight"},
                                   {kAttnNorm, "transformer.h.{}.ln_1.weight"},
                                   {kAttnNormBias, "transformer.h.{}.ln_1.bias"},
                                   {kQuery, "transformer.h.{}.attn.c_attn.weight", kIn},
                                   {kKey, "transformer.h.{}.attn.c_attn.weight", kIn},
                                   {kValue, "transformer.h.{}.attn.c_attn.weight", kIn},
                                   {kQueryBias, "transformer.h.{}.attn.c_attn.bias"},
                                   {kKeyBias, "transformer.h.{}.attn.c_attn.bias"},
                                   {kValueBias, "transformer.h.{}.attn.c_attn.bias"},
                                   {kAttnOut, "transformer.h.{}.attn.c_proj.weight", kIn},
                                   {kAttnOutBias, "transformer.h.{}.attn.c_proj.bias"},
                                   {kMlpNorm, "transformer.h.{}.ln_2.weight"},
                                   {kMlpNormBias, "transformer.h.{}.ln_2.bias"},
                                   {kUp, "transformer.h.{}.mlp.c_fc.weight", kIn},
                                   {kUpBias, "transformer.h.{}.mlp.c_fc.bias"},
                                   {kDown, "transformer.h.{}.mlp.c_proj.weight", kIn},
                                   {kDownBias, "transformer.h.{}.mlp.c_proj.bias"}};

void read_gpt2(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config, kGptSizes);
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_epsilon", 1e-5);
  config.gated_mlp = false;
  config.activation = read_activation(keys, "activation_function", "gelu_new");
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
  if (!keys.flag_or_true("scale_attn_weights")) config.attention_scale = 1;
}

}  // namespace

Family gpt2() {
  return {.name = "GPT-2",
          .architectures = {"GPT2LMHeadModel"},
          .model_types = {"gpt2"},
          .understood_keys = gpt_keys({"scale_attn_weights"}),
          .harmless_keys = gpt_harmless_keys({"output_past"}),
          .weights = rows_of({kGpt2Rows}),
          .other_names = {{{"transformer.", ""}}},
          .ignored_tensors = gpt_ignored_tensors(),
          .read = read_gpt2};
}

}  // namespace lancet
