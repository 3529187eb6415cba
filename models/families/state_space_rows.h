// Rows and keys that families with Mamba-2's mixers share (Bamba, Falcon-H1, Granite 4), and some of Jamba's and
// Nemotron-H's.
#pragma once

#include <initializer_list>

#include "config_reader.h"
#include "rows.h"

namespace lancet {

extern const Rows kStateSpaceOutside;  ///< embedding, final norm and head as Bamba names them
extern const Rows kStateSpace;         ///< the mixer, `mamba` in a layer
extern const Rows kStateSpaceNorm;     ///< norm before it and before attention
extern const Rows kFeedForward;        ///< norm and MLP as Bamba and Falcon-H1 name them

/// Llama's keys, and those of the mixers.
std::vector<std::string_view> state_space_keys(std::initializer_list<std::string_view> more);
/// Keys of the mixers that no computation hangs on.
std::vector<std::string_view> state_space_harmless_keys();

/// Reads the mixers' sizes, of `inner` numbers in all; which layers have them is the family's.
void read_state_space(ConfigReader& keys, ModelConfig& config, int64_t inner);
/// time_step_limit.
void read_step_limits(ConfigReader& keys, RecurrenceConfig& mixer);
/// Returns mamba_expand times the hidden size.
int64_t expanded_size(ConfigReader& keys, const ModelConfig& config);

}  // namespace lancet
