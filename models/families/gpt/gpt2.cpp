// GPT-2 (Radford et al. 2019): learned positions, LayerNorm, an MLP without a gate; matrices are stored [in, out].
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kIn = Layout::kColumns;
constexpr WeightRow kGpt2Rows[] = {{kQuery, "transformer.h.{}.attn.c_attn.weight", kIn},
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

void read_gpt2(ConfigReader& keys, ModelConfig& config) { read_gpt2_block(keys, config, "gelu_new"); }

}  // namespace

constinit const Family gpt2 = {.name = "GPT-2",
                               .architectures = {"GPT2LMHeadModel"},
                               .model_types = {"gpt2"},
                               .understood_keys = gpt_keys({"scale_attn_weights"}),
                               .harmless_keys = gpt_harmless_keys({"output_past"}),
                               .weights = rows_of({kGptBeforeAttention, kGpt2Rows}),
                               .other_names = {{{"transformer.", ""}}},
                               .ignored_tensors = kGptIgnoredTensors,
                               .read = read_gpt2};

}  // namespace lancet
