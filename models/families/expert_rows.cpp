#include "expert_rows.h"

#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Checks the groups: they must have equal sizes, each with as many experts as its score sums up, and together enough
/// in the chosen groups.
void check_groups(ConfigReader& keys, const ExpertsConfig& experts) {
  const int64_t groups = experts.groups;
  if (groups > 1 && (experts.count % groups != 0 || experts.count < experts.group_best * groups))
    keys.problem("n_group", cat("a divisor of the ", experts.count, " experts that leaves ", experts.group_best,
                                " or more in a group"));
  else if (experts.chosen > experts.count / groups * experts.groups_chosen)
    keys.problem("topk_group", cat("groups of at least the ", experts.chosen, " experts that are chosen"));
  if (experts.groups_chosen > groups) keys.problem("topk_group", cat("at most n_group, ", groups));
}

/// Every decoder_sparse_step-th layer has experts, except those in mlp_only_layers.
std::vector<bool> layers_with_experts(ConfigReader& keys, int64_t n_layers) {
  const int64_t step = keys.positive("decoder_sparse_step", 1);
  std::vector<bool> layers;
  for (int64_t layer = 0; layer < n_layers; ++layer) layers.push_back((layer + 1) % step == 0);
  for (const int64_t layer : keys.indices("mlp_only_layers", n_layers)) layers[static_cast<size_t>(layer)] = false;
  return layers;
}

}  // namespace

void read_qwen_experts(ConfigReader& keys, ModelConfig& config, ExpertsConfig defaults) {
  // the first name is that of transformers 5, the second that of transformers 4
  const char* count = keys.has("num_local_experts") ? "num_local_experts" : "num_experts";
  const int64_t default_size = defaults.d_ffn;
  const bool sums_to_one = defaults.sums_to_one;
  config.experts = read_experts(keys, count, std::move(defaults));
  config.experts.d_ffn = keys.size("moe_intermediate_size", kMostWide, default_size);
  config.experts.sums_to_one = sums_to_one ? keys.flag_or_true("norm_topk_prob") : keys.flag("norm_topk_prob");
  config.experts.layers = layers_with_experts(keys, config.n_layers);
}

void read_grouped_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults) {
  ExpertsConfig& experts = config.experts;
  experts = read_experts(keys, keys.has("num_local_experts") ? "num_local_experts" : "n_routed_experts", defaults);
  experts.d_ffn = keys.size("moe_intermediate_size", kMostWide, defaults.d_ffn);
  experts.scale = keys.above_zero("routed_scaling_factor", defaults.scale);
  experts.groups = keys.size("n_group", kMostExperts, defaults.groups);
  experts.groups_chosen = keys.size("topk_group", kMostExperts, defaults.groups_chosen);
  experts.shared = experts.d_ffn * keys.size("n_shared_experts", kMostExperts, defaults.shared / defaults.d_ffn);
  check_groups(keys, experts);
}

void read_corrected_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults) {
  read_grouped_experts(keys, config, defaults);
  config.experts.score = RouterScore::kSigmoid;
  config.experts.choice_bias = true;
  config.experts.sums_to_one = keys.flag_or_true("norm_topk_prob");
  config.experts.added_to_sum = 1e-20;
}

void read_first_dense(ConfigReader& keys, ModelConfig& config, int64_t default_dense) {
  const auto n_dense = static_cast<int64_t>(keys.at_least("first_k_dense_replace", 0, default_dense));
  config.experts.layers.clear();
  for (int64_t layer = 0; layer < config.n_layers; ++layer) config.experts.layers.push_back(layer >= n_dense);
}

void read_switched_expert(ConfigReader& keys, ModelConfig& config, int64_t default_size) {
  config.experts.shared = keys.size("shared_expert_intermediate_size", kMostWide, default_size);
  config.experts.shared_switch = true;
}

}  // namespace lancet
