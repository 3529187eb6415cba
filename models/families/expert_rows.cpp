#include "expert_rows.h"

namespace lancet {
namespace {

using enum WeightKind;

constexpr WeightRow kRoutedByQwen[] = {{kRouter, "model.layers.{}.mlp.gate.weight"},
                                       {kGate, "model.layers.{}.mlp.experts.{}.gate_proj.weight"},
                                       {kUp, "model.layers.{}.mlp.experts.{}.up_proj.weight"},
                                       {kDown, "model.layers.{}.mlp.experts.{}.down_proj.weight"},
                                       {kGate, "model.layers.{}.mlp.experts.gate_up_proj", Layout::kByExpert},
                                       {kUp, "model.layers.{}.mlp.experts.gate_up_proj", Layout::kByExpert},
                                       {kDown, "model.layers.{}.mlp.experts.down_proj", Layout::kByExpert}};
constexpr WeightRow kSwitched[] = {{kSharedGate, "model.layers.{}.mlp.shared_expert.gate_proj.weight"},
                                   {kSharedUp, "model.layers.{}.mlp.shared_expert.up_proj.weight"},
                                   {kSharedDown, "model.layers.{}.mlp.shared_expert.down_proj.weight"},
                                   {kSharedSwitch, "model.layers.{}.mlp.shared_expert_gate.weight"}};
constexpr WeightRow kShared[] = {{kSharedGate, "model.layers.{}.mlp.shared_experts.gate_proj.weight"},
                                 {kSharedUp, "model.layers.{}.mlp.shared_experts.up_proj.weight"},
                                 {kSharedDown, "model.layers.{}.mlp.shared_experts.down_proj.weight"}};
constexpr WeightRow kRoutedByMixtral[] = {{kRouter, "model.layers.{}.block_sparse_moe.gate.weight"},
                                          {kGate, "model.layers.{}.block_sparse_moe.experts.{}.w1.weight"},
                                          {kUp, "model.layers.{}.block_sparse_moe.experts.{}.w3.weight"},
                                          {kDown, "model.layers.{}.block_sparse_moe.experts.{}.w2.weight"}};

/// Every decoder_sparse_step-th layer has experts, but those of mlp_only_layers.
std::vector<bool> layers_with_experts(ConfigReader& keys, int64_t n_layers) {
  const int64_t step = keys.positive("decoder_sparse_step", 1);
  std::vector<bool> layers;
  for (int64_t layer = 0; layer < n_layers; ++layer) layers.push_back((layer + 1) % step == 0);
  for (const int64_t layer : keys.indices("mlp_only_layers", n_layers)) layers[static_cast<size_t>(layer)] = false;
  return layers;
}

}  // namespace

const Rows kQwenExperts{kRoutedByQwen};
const Rows kSwitchedExpert{kSwitched};
const Rows kSharedExperts{kShared};
const Rows kMixtralExperts{kRoutedByMixtral};

void read_qwen_experts(ConfigReader& keys, ModelConfig& config, ExpertsConfig defaults) {
  const char* count = keys.has("num_local_experts") ? "num_local_experts" : "num_experts";  // transformers 5, 4
  const int64_t default_size = defaults.d_ffn;
  const bool sums_to_one = defaults.sums_to_one;
  config.experts = read_experts(keys, count, std::move(defaults));
  config.experts.d_ffn = keys.size("moe_intermediate_size", kMostWide, default_size);
  config.experts.sums_to_one = sums_to_one ? keys.flag_or_true("norm_topk_prob") : keys.flag("norm_topk_prob");
  config.experts.layers = layers_with_experts(keys, config.n_layers);
}

std::vector<std::string_view> qwen_expert_keys(std::vector<std::string_view> others) {
  others.insert(others.end(), {"num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                               "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"});
  return others;
}

void read_switched_expert(ConfigReader& keys, ModelConfig& config, int64_t default_size) {
  config.experts.shared = keys.size("shared_expert_intermediate_size", kMostWide, default_size);
  config.experts.shared_switch = true;
}

}  // namespace lancet
