#include "state_space_rows.h"

#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Returns a number, or the value of {"__float__": "Infinity"}, which transformers writes; nullopt if it is neither.
std::optional<double> read_limit(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_object() && value.size() == 1 && value.value("__float__", nlohmann::json()) == "Infinity")
    return std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace

void read_step_limits(ConfigReader& keys, RecurrenceConfig& mixer) {
  const nlohmann::json* limits = keys.find("time_step_limit");
  if (limits == nullptr) return;
  const bool is_pair = limits->is_array() && limits->size() == 2;
  const std::optional<double> least = is_pair ? read_limit((*limits)[0]) : std::nullopt;
  const std::optional<double> most = is_pair ? read_limit((*limits)[1]) : std::nullopt;
  if (!least || !most || !(*least >= 0) || !(*most > *least))
    return keys.problem("time_step_limit", "two numbers, the first at least 0, the second above it");
  mixer.least_step = *least;
  mixer.most_step = *most;
}

int64_t expanded_size(ConfigReader& keys, const ModelConfig& config) {
  return keys.size("mamba_expand", kMostHeads, 2) * config.d_model;
}

void read_state_space(ConfigReader& keys, ModelConfig& config, int64_t inner) {
  RecurrenceConfig& mixer = config.recurrence;
  mixer.kind = MixerKind::kStateSpace;
  mixer.value_heads = keys.size("mamba_n_heads", kMostHeads, 128);
  mixer.key_heads = keys.size("mamba_n_groups", kMostHeads, 1);
  mixer.key_dim = keys.size("mamba_d_state", kMostHeads, 256);
  const nlohmann::json* head = keys.find("mamba_d_head");
  const bool follows = head == nullptr || *head == "auto";
  mixer.value_dim = follows ? std::max<int64_t>(inner / mixer.value_heads, 1) : keys.size("mamba_d_head", kMostHeads);
  if (mixer.value_size() != inner)
    keys.problem("mamba_n_heads", cat("heads of ", mixer.value_dim, " numbers that are ", inner, " together"));
  if (mixer.value_heads % mixer.key_heads != 0)
    keys.problem("mamba_n_groups", cat("a divisor of mamba_n_heads, ", mixer.value_heads));
  mixer.taps = keys.size("mamba_d_conv", kMostHeads, 4);
  mixer.taps_bias = keys.flag_or_true("mamba_conv_bias");
  if (keys.flag("mamba_proj_bias")) keys.problem("mamba_proj_bias", "false or no such key");
  read_step_limits(keys, mixer);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
}

}  // namespace lancet
