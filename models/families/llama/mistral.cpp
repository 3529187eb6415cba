// Mistral 7B v0.1 to v0.3, Nemo, Small (arXiv 2310.06825): Llama's block; in v0.1 all layers have a window.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_mistral(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  read_windows(keys, config, [](int64_t) { return true; });
}

}  // namespace

constinit const Family mistral = {.name = "Mistral",
                                  .architectures = {"MistralForCausalLM"},
                                  .model_types = {"mistral"},
                                  .understood_keys = llama_keys({"sliding_window", "layer_types"}),
                                  .weights = llama_rows(),
                                  .ignored_tensors = kLlamaIgnoredTensors,
                                  .read = read_mistral};

}  // namespace lancet
