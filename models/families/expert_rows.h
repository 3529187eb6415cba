// Rows and keys that families with experts share.
#pragma once

#include "config_reader.h"
#include "rows.h"

namespace lancet {

/// Router; gates, ups and downs, of each expert or of all in one tensor.
inline constexpr WeightRow kQwenExperts[] = {{kRouter, "model.layers.{}.mlp.gate.weight"},
                                             {kGate, "model.layers.{}.mlp.experts.{}.gate_proj.weight"},
                                             {kUp, "model.layers.{}.mlp.experts.{}.up_proj.weight"},
                                             {kDown, "model.layers.{}.mlp.experts.{}.down_proj.weight"},
                                             {kGate, "model.layers.{}.mlp.experts.gate_up_proj", Layout::kByExpert},
                                             {kUp, "model.layers.{}.mlp.experts.gate_up_proj", Layout::kByExpert},
                                             {kDown, "model.layers.{}.mlp.experts.down_proj", Layout::kByExpert}};
/// The MLP beside Qwen's experts, and what gives it a weight.
inline constexpr WeightRow kSwitchedExpert[] = {{kSharedGate, "model.layers.{}.mlp.shared_expert.gate_proj.weight"},
                                                {kSharedUp, "model.layers.{}.mlp.shared_expert.up_proj.weight"},
                                                {kSharedDown, "model.layers.{}.mlp.shared_expert.down_proj.weight"},
                                                {kSharedSwitch, "model.layers.{}.mlp.shared_expert_gate.weight"}};
/// The MLP beside DeepSeek's experts.
inline constexpr WeightRow kSharedExperts[] = {{kSharedGate, "model.layers.{}.mlp.shared_experts.gate_proj.weight"},
                                               {kSharedUp, "model.layers.{}.mlp.shared_experts.up_proj.weight"},
                                               {kSharedDown, "model.layers.{}.mlp.shared_experts.down_proj.weight"}};
/// The bias of scores that DeepSeek-V3's routers choose by.
inline constexpr WeightRow kRouterCorrection[] = {{kRouterBias, "model.layers.{}.mlp.gate.e_score_correction_bias"}};
/// Experts as Mixtral names them.
inline constexpr WeightRow kMixtralExperts[] = {{kRouter, "model.layers.{}.block_sparse_moe.gate.weight"},
                                                {kGate, "model.layers.{}.block_sparse_moe.experts.{}.w1.weight"},
                                                {kUp, "model.layers.{}.block_sparse_moe.experts.{}.w3.weight"},
                                                {kDown, "model.layers.{}.block_sparse_moe.experts.{}.w2.weight"}};

/// Qwen's keys: how many experts, how they are chosen, and which layers have them. d_ffn: where the key is left out.
void read_qwen_experts(ConfigReader& keys, ModelConfig& config, ExpertsConfig defaults);
/// The keys that it reads.
constexpr KeyList qwen_expert_keys(KeyList others) {
  return with_keys(others, {"num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                            "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"});
}

/// DeepSeek's keys: how many experts, in which groups, and the MLP beside them. Of `defaults` d_ffn and shared are
/// those of one expert and of all beside.
void read_grouped_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults);
/// DeepSeek-V3's: chosen by sigmoids with a bias.
void read_corrected_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults);
/// The keys that both read.
constexpr KeyList corrected_expert_keys(KeyList others) {
  return with_keys(others, {"n_routed_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                            "norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group", "n_shared_experts"});
}
/// first_k_dense_replace: so many layers, the first ones, have no experts.
void read_first_dense(ConfigReader& keys, ModelConfig& config, int64_t default_dense);

/// shared_expert_intermediate_size.
void read_switched_expert(ConfigReader& keys, ModelConfig& config, int64_t default_size);

}  // namespace lancet
