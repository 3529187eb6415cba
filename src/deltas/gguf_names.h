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
};

/// Throws: ConfigError for a family that llama.cpp does not have.
const GgufFamily& gguf_family(const ModelConfig& config);

/// "blk.3.ffn_down.weight", of experts "blk.3.ffn_down_exps.weight".
std::string gguf_name(const LinearModule& module);

/// Why no pair of llama.cpp changes the weight; empty: one does.
std::string why_no_gguf(const ModelConfig& config, const WeightSpec& spec);

}  // namespace lancet
