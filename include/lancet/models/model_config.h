// What config.json says about a model, as plain fields. Code branches on these, never on names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/dtype.h"
#include "lancet/io/checkpoint.h"
#include "lancet/models/families.h"

namespace lancet {

/// Rotary position embedding (Su et al., arXiv 2104.09864) and its stretchings.
struct RopeConfig {
  enum class Scaling {
    kNone,
    kLinear,  ///< positions divided by `factor`
    kLlama3   ///< frequencies below a threshold divided by `factor`, with a smooth passage (Llama 3.1)
  };
  double theta = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 1.0;
  int64_t original_max_positions = 0;
};

struct ModelConfig {
  const Family* family = nullptr;
  DType dtype = DType::kF32;  ///< of the stored weights
  int64_t vocab_size = 0;
  int64_t d_model = 0;
  int64_t d_ffn = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  bool tied_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  std::vector<int64_t> eos_ids;  ///< generation_config.json's where it has them, else config.json's
};

/// Reads config.json as transformers 4 and 5 write it. `ignored_keys`: keys of neither list that the user vouches for.
/// Throws: CheckpointError with every problem at once: missing or wrong keys, an unknown family, a key that would
/// change the computation and is not supported, a key in none of the family's lists (remedy: ignore_config_keys).
ModelConfig parse_model_config(std::string_view config_json, std::string_view generation_config_json,
                               std::span<const std::string> ignored_keys, std::string_view where);

/// Of a checkpoint's config.json and generation_config.json.
ModelConfig load_model_config(const Checkpoint& checkpoint, std::span<const std::string> ignored_keys = {});

}  // namespace lancet
