// Rows and keys that families with experts share.
#pragma once

#include "config_reader.h"
#include "rows.h"

namespace lancet {

extern const Rows kQwenExperts;     ///< router; gates, ups and downs, of each expert or of all in one tensor
extern const Rows kSwitchedExpert;  ///< the MLP beside Qwen's experts, and what gives it a weight
extern const Rows kSharedExperts;   ///< the MLP beside DeepSeek's experts
extern const Rows kMixtralExperts;  ///< likewise, as Mixtral names them

/// Qwen's keys: how many experts, how they are chosen, and which layers have them. d_ffn: where the key is left out.
void read_qwen_experts(ConfigReader& keys, ModelConfig& config, ExpertsConfig defaults);
/// The keys that it reads.
std::vector<std::string_view> qwen_expert_keys(std::vector<std::string_view> others);

/// shared_expert_intermediate_size.
void read_switched_expert(ConfigReader& keys, ModelConfig& config, int64_t default_size);

}  // namespace lancet
