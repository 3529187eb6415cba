// GPT-J (Wang & Komatsuzaki 2021): attention and MLP are parallel after one norm; a rotary embedding of adjacent pairs;
// an output head with a bias.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kGptjRows[] = {{kEmbedding, "transformer.wte.weight"},
                                   {kFinalNorm, "transformer.ln_f.weight"},
                                   {kFinalNormBias, "transformer.ln_f.bias"},
                                   {kHead, "lm_head.weight"},
                                   {kHeadBias, "lm_head.bias"},
                                   {kAttnNorm, "transformer.h.{}.ln_1.weight"},
                                   {kAttnNormBias, "transformer.h.{}.ln_1.bias"},
                                   {kQuery, "transformer.h.{}.attn.q_proj.weight"},
                                   {kKey, "transformer.h.{}.attn.k_proj.weight"},
                                   {kValue, "transformer.h.{}.attn.v_proj.weight"},
                                   {kAttnOut, "transformer.h.{}.attn.out_proj.weight"},
                                   {kUp, "transformer.h.{}.mlp.fc_in.weight"},
                                   {kUpBias, "transformer.h.{}.mlp.fc_in.bias"},
                                   {kDown, "transformer.h.{}.mlp.fc_out.weight"},
                                   {kDownBias, "transformer.h.{}.mlp.fc_out.bias"}};

constexpr int64_t kUsualTurned = 64;  // the default in transformers, for any head size

void read_gptj(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config, kGptSizes);
  config.order = BlockOrder::kParallel;
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_epsilon", 1e-5);
  config.rope.dim = keys.positive("rotary_dim", kUsualTurned);
  if (keys.is_null("rotary_dim")) keys.problem("rotary_dim", "a positive integer or no such key");
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.gated_mlp = false;
  config.activation = read_activation(keys, "activation_function", "gelu_new");
  config.mlp_bias = config.head_bias = true;
}

}  // namespace

constinit const Family gptj = {.name = "GPT-J",
                               .architectures = {"GPTJForCausalLM"},
                               .model_types = {"gptj"},
                               .understood_keys = gpt_keys({"rotary_dim"}),
                               .harmless_keys = gpt_harmless_keys({"rotary", "scale_attn_weights", "tokenizer_class"}),
                               .weights = rows_of({kGptjRows}),
                               .other_names = {{{"transformer.", ""}}},
                               .ignored_tensors = kGptIgnoredTensors,
                               .read = read_gptj};

}  // namespace lancet
