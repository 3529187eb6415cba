// Mistral 7B v0.1 to v0.3, Nemo, Small (arXiv 2310.06825): Llama's block, all layers with a window in v0.1.
#include "config_reader.h"
#include "family_list.h"
#include "rows.h"

namespace lancet {
namespace {

void read_mistral(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm_eps = keys.number("rms_norm_eps", 1e-6);
  config.rope = read_rope(keys, config);
  config.activation = read_activation(keys, "hidden_act", "silu");
  read_windows(keys, config, [](int64_t) { return true; });
}

}  // namespace

Family mistral() {
  return {.name = "Mistral",
          .architectures = {"MistralForCausalLM"},
          .model_types = {"mistral"},
          .understood_keys = llama_keys({"sliding_window", "layer_types"}),
          .weights = rows_of({kLlamaOutside, {&kLlamaAttnNorm, 1}, kLlamaAttention, {&kLlamaMlpNorm, 1}, kLlamaMlp}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_mistral};
}

}  // namespace lancet
