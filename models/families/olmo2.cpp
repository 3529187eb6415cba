// OLMo 2 (arXiv 2501.00656): norms after attention and after the MLP, none before them; queries and keys are normed
// over all heads.
#include "config_reader.h"
#include "family_list.h"
#include "rows.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr WeightRow kNorms[] = {{kAttnPostNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                {kMlpPostNorm, "model.layers.{}.post_feedforward_layernorm.weight"}};

void read_olmo2(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {}, /*default_eps=*/1e-5);
  config.norm = NormKind::kRmsPrecise;
  config.head_norm = HeadNorm::kWhole;
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
}

}  // namespace

Family olmo2() {
  return {.name = "OLMo 2",
          .architectures = {"Olmo2ForCausalLM"},
          .model_types = {"olmo2"},
          .understood_keys = llama_keys({"attention_bias"}),
          .weights = rows_of({kLlamaOutside, kLlamaAttention, kHeadNorms, kNorms, kLlamaMlp}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_olmo2};
}

}  // namespace lancet
