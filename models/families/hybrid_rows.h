// Rows and keys that families with recurrent mixers share; most are those of the gated delta rule (Qwen3-Next,
// Qwen3.5).
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "config_reader.h"
#include "rows.h"

namespace lancet {

extern const Rows kHybridAttention;  ///< norm before it, projections, gates, norms of heads
extern const Rows kHybridMixer;      ///< all but the projections from the hidden state
extern const Rows kHybridMlpNorm;

/// Llama's keys, and those of mixers.
std::vector<std::string_view> hybrid_keys(std::initializer_list<std::string_view> more);

/// Which layers have a mixer: those that `layer_types` gives one of the names (others have one of attention's), or what
/// `otherwise` says where it is left out.
std::vector<bool> layers_with_mixer(ConfigReader& keys, int64_t n_layers, std::initializer_list<std::string_view> names,
                                    const std::function<std::vector<bool>(ConfigReader&)>& otherwise);

/// Reads norms, rotary embedding, gates of attention, mixers and which layers have them.
void read_hybrid_fields(ConfigReader& keys, ModelConfig& config);

}  // namespace lancet
