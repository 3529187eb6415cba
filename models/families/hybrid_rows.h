// Rows and keys that families with a gated delta rule share (Qwen3-Next, Qwen3.5).
#pragma once

#include <initializer_list>

#include "config_reader.h"
#include "rows.h"

namespace lancet {

extern const Rows kHybridAttention;  ///< norm before it, projections, gates, norms of heads
extern const Rows kHybridMixer;      ///< all but the projections from the hidden state
extern const Rows kHybridMlpNorm;

/// Llama's keys, and those of mixers.
std::vector<std::string_view> hybrid_keys(std::initializer_list<std::string_view> more);

/// Reads norms, rotary embedding, gates of attention, mixers and which layers have them.
void read_hybrid_fields(ConfigReader& keys, ModelConfig& config);

}  // namespace lancet
