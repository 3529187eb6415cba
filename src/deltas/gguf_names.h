// The names of families and their matrices in llama.cpp.
#pragma once

#include <string>
#include <string_view>

#include "adapter_modules.h"

namespace lancet {

struct GgufFamily {
  std::string_view architecture;  ///< architecture in config.json
  std::string_view name;          ///< general.architecture
  /// Whether the two halves of each head of queries and keys are interleaved.
  bool interleaves_heads = false;
  std::string_view name_with_experts = {};  ///< other name of models with experts, if there is one
  /// Another name of models in which no layer has a recurrent mixer, if there is one.
  std::string_view name_without_mixers = {};
  bool splits_gates_and_ups = false;  ///< llama.cpp has two tensors for a fused gate and up projection
  bool folds_factors = false;         ///< llama.cpp's weights contain the factors of their outputs
};

/// Throws: ConfigError for a family that llama.cpp does not have.
const GgufFamily& gguf_family(const ModelConfig& config);

/// Returns general.architecture.
std::string_view gguf_architecture(const ModelConfig& config);

/// Returns the name of a module's tensor, or with `part` the name of that part's own tensor: "blk.3.ffn_down.weight",
/// for experts "blk.3.ffn_down_exps.weight".
std::string gguf_name(const ModelConfig& config, const LinearModule& module, const ModulePart* part = nullptr);

/// Returns the factor between llama.cpp's weight and the file's.
double gguf_factor(const ModelConfig& config, WeightKind kind);

/// Returns why no pair of llama.cpp can change the weight; empty if one can.
std::string why_no_gguf(const ModelConfig& config, const WeightSpec& spec);

}  // namespace lancet
