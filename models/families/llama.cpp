// Llama 1 to 3.3 (arXiv 2302.13971, 2407.21783).
#include "config_reader.h"
#include "family_list.h"
#include "rows.h"

namespace lancet {
namespace {

void read_llama(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm_eps = keys.number("rms_norm_eps", 1e-6);
  config.rope = read_rope(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
  config.activation = read_activation(keys, "hidden_act", "silu");
}

}  // namespace

Family llama() {
  return {.name = "Llama",
          .architectures = {"LlamaForCausalLM"},
          .model_types = {"llama"},
          .understood_keys = llama_keys({"attention_bias", "mlp_bias"}),
          .weights = rows_of({kLlamaOutside, {&kLlamaAttnNorm, 1}, kLlamaAttention, {&kLlamaMlpNorm, 1}, kLlamaMlp}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_llama};
}

}  // namespace lancet
