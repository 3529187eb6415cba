// GPT-BigCode: SantaCoder and StarCoder (arXiv 2301.03988, 2305.06161): GPT-2's block with one key head for all query
// heads.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kOfKeyHeads = Layout::kByHead;
constexpr WeightRow kBigCodeAttention[] = {{kQuery, "transformer.h.{}.attn.c_attn.weight", kOfKeyHeads},
                                           {kKey, "transformer.h.{}.attn.c_attn.weight", kOfKeyHeads},
                                           {kValue, "transformer.h.{}.attn.c_attn.weight", kOfKeyHeads},
                                           {kQueryBias, "transformer.h.{}.attn.c_attn.bias", kOfKeyHeads},
                                           {kKeyBias, "transformer.h.{}.attn.c_attn.bias", kOfKeyHeads},
                                           {kValueBias, "transformer.h.{}.attn.c_attn.bias", kOfKeyHeads},
                                           {kAttnOut, "transformer.h.{}.attn.c_proj.weight"},
                                           {kAttnOutBias, "transformer.h.{}.attn.c_proj.bias"}};

void read_gpt_bigcode(ConfigReader& keys, ModelConfig& config) {
  read_gpt2_block(keys, config, "gelu_pytorch_tanh");
  if (keys.flag_or_true("multi_query")) config.n_kv_heads = 1;
}

}  // namespace

constinit const Family gpt_bigcode = {
    .name = "GPT-BigCode",
    .architectures = {"GPTBigCodeForCausalLM"},
    .model_types = {"gpt_bigcode"},
    .understood_keys = gpt_keys({"multi_query", "scale_attn_weights"}),
    .harmless_keys = gpt_harmless_keys({"num_key_value_heads", "attention_softmax_in_fp32",
                                        "scale_attention_softmax_in_fp32", "inference_runner", "validate_runner_input",
                                        "pre_allocate_kv_cache", "max_batch_size", "max_sequence_length"}),
    .weights = rows_of({kGptBeforeAttention, kBigCodeAttention, kGptAfterAttention}),
    .ignored_tensors = kGptIgnoredTensors,
    .read = read_gpt_bigcode};

}  // namespace lancet
