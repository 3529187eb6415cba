// Rows and keys that families with experts share.
#pragma once

#include "config_reader.h"
#include "rows.h"

namespace lancet {

extern const Rows kQwenExperts;       ///< router; gates, ups and downs, of each expert or of all in one tensor
extern const Rows kSwitchedExpert;    ///< the MLP beside Qwen's experts, and what gives it a weight
extern const Rows kSharedExperts;     ///< the MLP beside DeepSeek's experts
extern const Rows kRouterCorrection;  ///< the bias of scores that DeepSeek-V3's routers choose by
extern const Rows kMixtralExperts;    ///< experts as Mixtral names them

/// Qwen's keys: how many experts, how they are chosen, and which layers have them. d_ffn: where the key is left out.
void read_qwen_experts(ConfigReader& keys, ModelConfig& config, ExpertsConfig defaults);
/// The keys that it reads.
std::vector<std::string_view> qwen_expert_keys(std::vector<std::string_view> others);

/// DeepSeek's keys: how many experts, in which groups, and the MLP beside them. Of `defaults` d_ffn and shared are
/// those of one expert and of all beside.
void read_grouped_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults);
/// DeepSeek-V3's: chosen by sigmoids with a bias.
void read_corrected_experts(ConfigReader& keys, ModelConfig& config, const ExpertsConfig& defaults);
/// The keys that both read.
std::vector<std::string_view> corrected_expert_keys(std::vector<std::string_view> others);
/// first_k_dense_replace: so many layers, the first ones, have no experts.
void read_first_dense(ConfigReader& keys, ModelConfig& config, int64_t default_dense);

/// shared_expert_intermediate_size.
void read_switched_expert(ConfigReader& keys, ModelConfig& config, int64_t default_size);

}  // namespace lancet
