// The table of model families. A family is a row: what its config.json may hold and what its weights are called.
// A family of the same block structure (pre-norm, RMSNorm, rotary GQA, gated MLP) is added by adding a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

enum class WeightKind : uint8_t {
  kEmbedding,
  kAttnNorm,
  kQuery,
  kKey,
  kValue,
  kAttnOut,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kAttnOutBias,
  kMlpNorm,
  kGate,
  kUp,
  kDown,
  kGateBias,
  kUpBias,
  kDownBias,
  kFinalNorm,
  kHead
};

/// Name of one kind of weight; "{}" stands for the layer.
struct WeightName {
  WeightKind kind;
  std::string_view name;
};

struct Family {
  std::string_view name;          ///< for people: "Llama"
  std::string_view architecture;  ///< config.json architectures[0]
  std::string_view model_type;    ///< config.json model_type
  std::vector<std::string_view> understood_keys;
  std::vector<std::string_view> harmless_keys;  ///< training and bookkeeping: no effect on the forward pass
  std::vector<std::string_view>
      refused_keys;  ///< change the forward pass in a way that is not supported, unless null or false
  std::vector<WeightName> weights;
  std::vector<std::string_view>
      ignored_tensors;  ///< stored by old exporters, recomputed here; "{}" stands for the layer
};

std::span<const Family> families();

}  // namespace lancet
