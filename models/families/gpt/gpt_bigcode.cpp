// GPT-BigCode: SantaCoder and StarCoder (arXiv 2301.03988, 2305.06161): GPT-2's block with one key head for all.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr auto kOfKeyHeads = Layout::kByHead;
constexpr WeightRow kBigCodeRows[] = {{kEmbedding, "transformer.wte.weight"},
                                      {kPositions, "transformer.wpe.weight"},
                                      {kFinalNorm, "transformer.ln_f.weight"},
                                      {kFinalNormBias, "transformer.ln_f.bias"},
                                      {kHead, "lm_head.weight"},
                                      {kAttnNorm, "transformer.h.{}.ln_1.weight"},
                                      {kAttnNormBias, "transformer.h.{}.ln_1.bias"},
                                      {kQuery, "transformer.h.{}.attn.c_attn.weight", kOfKeyHeads},
                                      {kKey, "transformer.h.{}.attn.c_attn.weight", kOfKeyHeads},
                                      {kValue, "transformer.h.{}.attn.c_attn.weight", kOfKeyHeads},
                                      {kQueryBias, "transformer.h.{}.attn.c_attn.bias", kOfKeyHeads},
                                      {kKeyBias, "transformer.h.{}.attn.c_attn.bias", kOfKeyHeads},
                                      {kValueBias, "transformer.h.{}.attn.c_attn.bias", kOfKeyHeads},
                                      {kAttnOut, "transformer.h.{}.attn.c_proj.weight"},
                                      {kAttnOutBias, "transformer.h.{}.attn.c_proj.bias"},
                                      {kMlpNorm, "transformer.h.{}.ln_2.weight"},
                                      {kMlpNormBias, "transformer.h.{}.ln_2.bias"},
                                      {kUp, "transformer.h.{}.mlp.c_fc.weight"},
                                      {kUpBias, "transformer.h.{}.mlp.c_fc.bias"},
                                      {kDown, "transformer.h.{}.mlp.c_proj.weight"},
                                      {kDownBias, "transformer.h.{}.mlp.c_proj.bias"}};

void read_gpt_bigcode(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config, kGptSizes);
  if (keys.flag_or_true("multi_query")) config.n_kv_heads = 1;
  config.norm = NormKind::kLayer;
  config.norm_eps = keys.number("layer_norm_epsilon", 1e-5);
  config.gated_mlp = false;
  config.activation = read_activation(keys, "activation_function", "gelu_pytorch_tanh");
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = true;
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
  if (!keys.flag_or_true("scale_attn_weights")) config.attention_scale = 1;
}

}  // namespace

Family gpt_bigcode() {
  return {.name = "GPT-BigCode",
          .architectures = {"GPTBigCodeForCausalLM"},
          .model_types = {"gpt_bigcode"},
          .understood_keys = gpt_keys({"multi_query", "scale_attn_weights"}),
          .harmless_keys =
              gpt_harmless_keys({"num_key_value_heads", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                                 "inference_runner", "validate_runner_input", "pre_allocate_kv_cache", "max_batch_size",
                                 "max_sequence_length"}),
          .weights = rows_of({kBigCodeRows}),
          .ignored_tensors = gpt_ignored_tensors(),
          .read = read_gpt_bigcode};
}

}  // namespace lancet
