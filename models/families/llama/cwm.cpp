// CWM (Meta 2025): Llama with a window in three of four layers.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_cwm(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_positions = 131072, .default_head_dim = 128}, /*default_eps=*/1e-5,
                    /*default_theta=*/1e6);
  if (!keys.has("rope_scaling") && !keys.has("rope_parameters"))
    keys.problem("rope_parameters", "an object that says how positions are scaled");
  config.mlp_bias = keys.flag("mlp_bias");
  read_windows(
      keys, config, [](int64_t layer) { return layer % 4 != 0; }, 8192);
}

}  // namespace

constinit const Family cwm = {.name = "CWM",
                              .architectures = {"CwmForCausalLM"},
                              .model_types = {"cwm"},
                              .understood_keys = llama_keys({"mlp_bias", "sliding_window", "layer_types"}),
                              .weights = llama_rows(),
                              .ignored_tensors = kLlamaIgnoredTensors,
                              .read = read_cwm};

}  // namespace lancet
