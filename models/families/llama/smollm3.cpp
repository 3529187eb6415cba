// SmolLM3 (Hugging Face 2025): Llama's block; every fourth layer has no rotary embedding.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

/// Reads a number for each layer: 1 if it has a rotary embedding.
void read_rotary_layers(ConfigReader& keys, ModelConfig& config) {
  const std::vector<int64_t> listed = keys.indices("no_rope_layers", 2);
  const int64_t interval = keys.positive("no_rope_layer_interval", 4);
  if (!listed.empty() && std::ssize(listed) != config.n_layers && !keys.is_wrong("no_rope_layers"))
    keys.problem("no_rope_layers", "a number for each layer");
  for (int64_t layer = 0; layer < config.n_layers; ++layer)
    config.rotary_layers.push_back(std::ssize(listed) == config.n_layers ? listed[static_cast<size_t>(layer)] == 1
                                                                         : (layer + 1) % interval != 0);
}

void read_smollm3(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_kv_heads = 4}, /*default_eps=*/1e-6, /*default_theta=*/2e6);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
  read_rotary_layers(keys, config);
  if (keys.flag("use_sliding_window"))
    read_windows(keys, config, [&config](int64_t layer) { return !config.has_rotary(layer); });
}

}  // namespace

constinit const Family smollm3 = {
    .name = "SmolLM3",
    .architectures = {"SmolLM3ForCausalLM"},
    .model_types = {"smollm3"},
    .understood_keys = llama_keys({"attention_bias", "mlp_bias", "sliding_window", "use_sliding_window", "layer_types",
                                   "no_rope_layers", "no_rope_layer_interval"}),
    .harmless_keys = {"max_window_layers"},
    .weights = llama_rows(),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_smollm3};

}  // namespace lancet
