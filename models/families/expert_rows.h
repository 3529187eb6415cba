// Weight rows and config keys that families with experts share.
#pragma once

#include "config_reader.h"
#include "rows.h"

namespace lancet {

/// The router; the gates, ups and downs of each expert, or of all experts in one tensor.
inline constexpr WeightRow kQwenExperts[] = {{kRouter, "model.layers.{}.mlp.gate.weight"},
                                             {kGate, "model.layers.{}.mlp.experts.{}.gate_proj.weight"},
                                             {kUp, "model.layers.{}.mlp.experts.{}.up_proj.weight"},
                                             {kDown, "model.layers.{}.mlp.experts.{}.down_proj.weight"},
                                             {kGate, "model.layers.{}.mlp.experts.gate_up_proj", Layout::kByExpert},
                                             {kUp, "model.layers.{}.mlp.experts.gate_up_proj", Layout::kByExpert},
                                             {kDown, "model.layers.{}.mlp.experts.down_proj", Layout::kByExpert}};
/// The MLP beside Qwen's experts, and the gate that weights it.
inline constexpr WeightRow kSwitchedExpert[] = {{kSharedGate, "model.layers.{}.mlp.shared_expert.gate_proj.weight"},
                                                {kSharedUp, "model.layers.{}.mlp.shared_expert.up_proj.weight"},
                                                {kSharedDown, "model.layers.{}.mlp.shared_expert.down_proj.weight"},
                                                {kSharedSwitch, "model.layers.{}.mlp.shared_expert_gate.weight"}};
/// The MLP beside DeepSeek's experts.
inline constexpr WeightRow kSharedExperts[] = {{kSharedGate, "model.layers.{}.mlp.shared_experts.gate_proj.weight"},
                                               {kSharedUp, "model.layers.{}.mlp.shared_experts.up_proj.weight"},
                                               {kSharedDown, "model.layers.{}.mlp.shared_experts.down_proj.weight"}};
/// The bias that DeepSeek-V3's routers add to scores when they choose experts.
inline constexpr WeightRow kRouterCorrection[] = {{kRouterBias, "model.layers.{}.mlp.gate.e_score_correction_bias"}};
/// The names of experts in Mixtral.
inline constexpr WeightRow kMixtralExperts[] = {{kRouter, "model.layers.{}.block_sparse_moe.gate.weight"},
                                                {kGate, "model.layers.{}.block_sparse_moe.experts.{}.w1.weight"},
                                                {kUp, "model.layers.{}.block_sparse_moe.experts.{}.w3.weight"},
                                                {kDown, "model.layers.{}.block_sparse_moe.experts.{}.w2.weight"}};

/// Reads Qwen's keys: the number of experts, how they are chosen, and which layers have them. d_ffn: used if the key is
/// absent.
void read_qwen_experts(ConfigReader& keys, ModelConfig& config, ExpertsConfig defaults);
/// Returns the keys that it reads.
constexpr KeyList qwen_expert_keys(KeyList others) {
  return with_keys(others, {"num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                            "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"});
}

/// Reads DeepSeek's keys: the number of experts, their groups, and the MLP beside them. In `defaults`, d_ffn is the
/// size of one expert, and shared is that of the whole MLP beside them.
void read_grouped_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults);
/// Reads the keys of DeepSeek-V3, whose experts are chosen by sigmoids with a bias.
void read_corrected_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults);
/// Returns the keys that both functions read.
constexpr KeyList corrected_expert_keys(KeyList others) {
  return with_keys(others, {"n_routed_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                            "norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group", "n_shared_experts"});
}
/// Reads first_k_dense_replace: so many layers at the beginning have no experts.
void read_first_dense(ConfigReader& keys, ModelConfig& config, int64_t default_dense);

/// Reads shared_expert_intermediate_size.
void read_switched_expert(ConfigReader& keys, ModelConfig& config, int64_t default_size);

}  // namespace lancet
