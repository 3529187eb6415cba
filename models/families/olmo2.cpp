// OLMo 2 (arXiv 2501.00656): norms behind attention and behind the MLP, none before them; queries and keys are normed
// over all heads.
#include "config_reader.h"
#include "family_list.h"
#include "rows.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr WeightRow kNorms[] = {{kQueryNorm, "model.layers.{}.self_attn.q_norm.weight"},
                                {kKeyNorm, "model.layers.{}.self_attn.k_norm.weight"},
                                {kAttnPostNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                {kMlpPostNorm, "model.layers.{}.post_feedforward_layernorm.weight"}};

void read_olmo2(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm = NormKind::kRmsPrecise;
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.head_norm = HeadNorm::kWhole;
  config.rope = read_rope(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.activation = read_activation(keys, "hidden_act", "silu");
}

}  // namespace

Family olmo2() {
  return {.name = "OLMo 2",
          .architectures = {"Olmo2ForCausalLM"},
          .model_types = {"olmo2"},
          .understood_keys = llama_keys({"attention_bias"}),
          .weights = rows_of({kLlamaOutside, kLlamaAttention, kNorms, kLlamaMlp}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_olmo2};
}

}  // namespace lancet
