// Ministral (2025): Mistral with a window in some layers. Ministral 3: its queries grow with their positions.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_ministral(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_positions = 131072, .default_kv_heads = 8});
  read_windows(
      keys, config, [](int64_t) { return true; }, 4096);
}

void read_ministral3(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 262144, .default_kv_heads = 8, .default_head_dim = 128});
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope =
      read_rope(keys, config, {.other_keys = {"llama_4_scaling_beta", "max_position_embeddings", "mscale_all_dim"}});
  config.activation = read_activation(keys, "hidden_act", "silu");
  std::optional<ConfigReader> rope = keys.object("rope_parameters");
  if (!rope) return keys.problem("rope_parameters", "an object with llama_4_scaling_beta");
  config.rope.growth = rope->number("llama_4_scaling_beta");
  config.rope.original_max_positions = rope->positive("original_max_position_embeddings");
  read_windows(keys, config, [](int64_t) { return true; });
}

}  // namespace

constinit const Family ministral = {.name = "Ministral",
                                    .architectures = {"MinistralForCausalLM"},
                                    .model_types = {"ministral"},
                                    .understood_keys = llama_keys({"sliding_window", "layer_types"}),
                                    .weights = llama_rows(),
                                    .ignored_tensors = kLlamaIgnoredTensors,
                                    .read = read_ministral};

constinit const Family ministral3 = {.name = "Ministral 3",
                                     .architectures = {"Ministral3ForCausalLM"},
                                     .model_types = {"ministral3"},
                                     .understood_keys = llama_keys({"sliding_window"}),
                                     .weights = llama_rows(),
                                     .ignored_tensors = kLlamaIgnoredTensors,
                                     .read = read_ministral3};

}  // namespace lancet
