// Gemma 1 (arXiv 2403.08295): norms with factor 1 + w, scaled embeddings, a GELU gate.
#include <cmath>

#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"
#include "gemma_config.h"

namespace lancet {
namespace {

/// Old configurations say "gelu" but mean its approximation, which transformers always computes.
void read_gemma(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  read_gemma_fields(keys, config);
  config.attention_scale = 1 / std::sqrt(static_cast<double>(config.head_dim));
  config.rope = read_rope(keys, config);
  const bool is_old = keys.text("hidden_act", "gelu_pytorch_tanh") == "gelu" && !keys.has("hidden_activation");
  config.activation = is_old ? Activation::kGeluTanh
                             : read_activation(keys, keys.has("hidden_activation") ? "hidden_activation" : "hidden_act",
                                               "gelu_pytorch_tanh");
}

}  // namespace

constinit const Family gemma = {.name = "Gemma",
                                .architectures = {"GemmaForCausalLM"},
                                .model_types = {"gemma"},
                                .understood_keys = llama_keys({"hidden_activation", "attention_bias"}),
                                .weights = llama_rows(),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_gemma};

}  // namespace lancet
