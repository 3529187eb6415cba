// What llama.cpp calls a family and its matrices.
#pragma once

#include <string>
#include <string_view>

#include "adapter_modules.h"

namespace lancet {

struct GgufFamily {
  std::string_view architecture;  ///< config.json's
  std::string_view name;          ///< general.architecture
  /// Whether queries and keys lie with the two halves of each head interleaved.
  bool interleaves_heads = false;
  std::string_view name_with_experts = {};    ///< name of models with experts, where it is another
  std::string_view name_without_mixers = {};  ///< likewise of models of which no layer has a recurrent mixer
  bool splits_gates_and_ups = false;          ///< gate and up of one tensor are two there
  bool folds_factors = false;                 ///< weights have the factors of what they give
};

/// Throws: ConfigError for a family that llama.cpp does not have.
const GgufFamily& gguf_family(const ModelConfig& config);

/// Returns general.architecture.
std::string_view gguf_architecture(const ModelConfig& config);

/// The name of a module's tensor, or with `part` of that part's own: "blk.3.ffn_down.weight", of experts
/// "blk.3.ffn_down_exps.weight".
std::string gguf_name(const ModelConfig& config, const LinearModule& module, const ModulePart* part = nullptr);

/// What the file's weight is multiplied by there.
double gguf_factor(const ModelConfig& config, WeightKind kind);

/// Why no pair of llama.cpp changes the weight; empty: one does.
std::string why_no_gguf(const ModelConfig& config, const WeightSpec& spec);

}  // namespace lancet
