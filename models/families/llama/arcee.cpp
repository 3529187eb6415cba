// Arcee Foundation Models (2025): Llama's attention, an MLP with a squared ReLU and without a gate.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_arcee(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope = read_rope(keys, config);
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "relu2");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
}

}  // namespace

constinit const Family arcee = {.name = "Arcee",
                                .architectures = {"ArceeForCausalLM"},
                                .model_types = {"arcee"},
                                .understood_keys = llama_keys({"attention_bias", "mlp_bias"}),
                                .weights = llama_rows(),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_arcee};

}  // namespace lancet
