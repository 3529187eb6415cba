// EXAONE 4 (arXiv 2507.11407): norms only after the blocks; normed queries and keys. If some layers have a window, the
// others have no rotary embedding.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kExaoneNorms[] = {{kAttnPostNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                      {kMlpPostNorm, "model.layers.{}.post_feedforward_layernorm.weight"}};

void read_exaone4(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_kv_heads = 32}, /*default_eps=*/1e-5);
  config.head_norm = HeadNorm::kPerHead;
  const bool is_listed = keys.has("layer_types");
  const int64_t pattern = is_listed || keys.is_null("sliding_window") ? 1 : keys.positive("sliding_window_pattern", 4);
  read_windows(
      keys, config, [pattern](int64_t layer) { return (layer + 1) % pattern != 0; }, 4096);
  if (config.window > 0) turn_windows_alone(config);
}

}  // namespace

constinit const Family exaone4 = {
    .name = "EXAONE 4",
    .architectures = {"Exaone4ForCausalLM"},
    .model_types = {"exaone4"},
    .understood_keys = llama_keys({"sliding_window", "layer_types", "sliding_window_pattern"}),
    .weights = rows_of({kLlamaOutside, kLlamaAttention, kHeadNorms, kExaoneNorms, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_exaone4};

}  // namespace lancet
