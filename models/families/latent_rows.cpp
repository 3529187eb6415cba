#include "latent_rows.h"

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "rope_reader.h"

namespace lancet {
namespace {

/// Returns the factor of scores with YaRN. The cosines and sines then have a smaller factor (mscale_all_dim).
double score_growth(ConfigReader& keys, const RopeConfig& rope) {
  if (rope.scaling == RopeConfig::Scaling::kNone) return 1;
  double share = 0;
  // if both are present, the second one counts
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    std::optional<ConfigReader> object = keys.object(key);
    if (!object || !object->has("factor")) continue;
    share = object->at_least("mscale_all_dim", 0, 0);
    if (share > 0 && rope.scaling != RopeConfig::Scaling::kYarn)
      object->problem("mscale_all_dim", "no such key, but for yarn");
  }
  const double growth = rope.factor > 1 ? 1 + 0.1 * share * std::log(rope.factor) : 1;
  return growth * growth;
}

/// Refuses a share of the rotated numbers, because versions of transformers interpret it differently.
void refuse_share(ConfigReader& keys) {
  constexpr std::string_view kKey = "partial_rotary_factor", kWhole = "1 or no such key";
  if (keys.share(kKey, 1) != 1 && !keys.is_wrong(kKey)) keys.problem(kKey, kWhole);
  for (const std::string_view key : {"rope_parameters", "rope_scaling"})
    if (std::optional<ConfigReader> object = keys.object(key); object && object->share(kKey, 1) != 1)
      if (!object->is_wrong(kKey)) object->problem(kKey, kWhole);
}

/// Returns 0 for null, which means that there is none.
int64_t read_query_rank(ConfigReader& keys, int64_t fallback) {
  return keys.is_null("q_lora_rank") ? 0 : keys.size("q_lora_rank", kMostWide, fallback);
}

void check_heads(ConfigReader& keys, const ModelConfig& config) {
  if (const int64_t n = keys.size("num_key_value_heads", kMostHeads, config.n_heads); n != config.n_heads)
    keys.problem("num_key_value_heads", cat("num_attention_heads, ", config.n_heads, ", or no such key"));
  if (config.latent.value_dim > config.head_dim)
    keys.problem("v_head_dim", cat("at most a key's numbers, ", config.head_dim));
  for (const auto& [key, size] :
       {std::pair<std::string_view, int64_t>{"head_dim", config.latent.turned_dim}, {"qk_head_dim", config.head_dim}})
    if (keys.size(key, kMostHeads, size) != size && !keys.is_wrong(key))
      keys.problem(key, cat(size, " by the sizes of its parts, or no such key"));
  if (keys.flag("attention_bias")) keys.problem("attention_bias", "false: latent attention has no biases here");
}

}  // namespace

void read_latent_fields(ConfigReader& keys, ModelConfig& config, const LatentDefaults& defaults) {
  read_sizes(keys, config, {.default_positions = defaults.positions, .default_heads = defaults.heads});
  config.norm_eps = keys.number("rms_norm_eps", defaults.norm_eps);
  config.activation = read_activation(keys, "hidden_act", "silu");
  const int64_t shared_dim = std::max<int64_t>(config.d_model / config.n_heads, 1);
  const int64_t default_value_dim = defaults.latent.value_dim > 0 ? defaults.latent.value_dim : shared_dim;
  LatentConfig& latent = config.latent;
  latent.rank = keys.size("kv_lora_rank", kMostWide, defaults.latent.rank);
  latent.query_rank = read_query_rank(keys, defaults.latent.query_rank);
  latent.plain_dim = keys.size("qk_nope_head_dim", kMostHeads, defaults.latent.plain_dim);
  latent.turned_dim = keys.size("qk_rope_head_dim", kMostHeads, defaults.latent.turned_dim);
  latent.value_dim = keys.size("v_head_dim", kMostHeads, default_value_dim);
  config.head_dim = latent.turned_dim;  // all of it is rotated
  config.rope = read_rope(keys, config);
  if (keys.flag_or_true("rope_interleave")) config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.head_dim = latent.plain_dim + latent.turned_dim;
  config.attention_scale = score_growth(keys, config.rope) / std::sqrt(static_cast<double>(config.head_dim));
  check_heads(keys, config);
  refuse_share(keys);
}

}  // namespace lancet
