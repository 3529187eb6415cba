#include "hybrid_rows.h"

#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/gguf/tiled_heads.h"
#include "rope_reader.h"

namespace lancet {
namespace {

std::vector<bool> layers_by_interval(ConfigReader& keys, int64_t n_layers) {
  const int64_t interval = keys.positive("full_attention_interval", 4);
  std::vector<bool> layers;
  for (int64_t layer = 0; layer < n_layers; ++layer) layers.push_back((layer + 1) % interval != 0);
  return layers;
}

}  // namespace

std::vector<bool> layers_with_mixer(ConfigReader& keys, int64_t n_layers, std::initializer_list<std::string_view> names,
                                    const std::function<std::vector<bool>(ConfigReader&)>& otherwise) {
  const std::vector<std::string> types = keys.texts("layer_types");
  if (types.empty()) return otherwise(keys);
  if (std::ssize(types) != n_layers) keys.problem("layer_types", cat("one for each of the ", n_layers, " layers"));
  std::vector<bool> layers(static_cast<size_t>(n_layers));
  for (size_t layer = 0; layer < std::min(types.size(), layers.size()); ++layer) {
    const std::string& type = types[layer];
    layers[layer] = std::ranges::find(names, type) != names.end();
    if (!layers[layer] && type != "full_attention" && type != "attention" && !keys.is_wrong("layer_types"))
      keys.problem("layer_types", cat(*names.begin(), " or full_attention"));
  }
  return layers;
}

void read_hybrid_fields(ConfigReader& keys, ModelConfig& config) {
  config.norm = NormKind::kRmsPlusOne;
  config.norm_eps = keys.number("rms_norm_eps", 1e-6);
  config.head_norm = HeadNorm::kPerHead;
  config.rope = read_rope(
      keys, config,
      {.share = keys.share("partial_rotary_factor", 0.25), .other_keys = {"mrope_section", "mrope_interleaved"}});
  config.gated_attention = true;
  if (!keys.flag_or_true("attn_output_gate")) keys.problem("attn_output_gate", "true or no such key");
  if (keys.flag("attention_bias")) keys.problem("attention_bias", "false or no such key in this family");
  RecurrenceConfig& mixer = config.recurrence;
  mixer.key_heads = keys.size("linear_num_key_heads", kMostHeads, 16);
  mixer.value_heads = keys.size("linear_num_value_heads", kMostHeads, 32);
  mixer.key_dim = keys.size("linear_key_head_dim", kMostHeads, 128);
  mixer.value_dim = keys.size("linear_value_head_dim", kMostHeads, 128);
  mixer.taps = keys.size("linear_conv_kernel_dim", kMostHeads, 4);
  mixer.tiled_values = keys.flag(kTiledValueHeads);
  if (mixer.value_heads % mixer.key_heads != 0)
    keys.problem("linear_num_value_heads", cat("a multiple of linear_num_key_heads, ", mixer.key_heads));
  mixer.layers = layers_with_mixer(keys, config.n_layers, {"linear_attention"},
                                   [&](ConfigReader& own) { return layers_by_interval(own, config.n_layers); });
}

}  // namespace lancet
