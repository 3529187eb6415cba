// What options that are `auto` go by: layers by depth, as published choices lie; solves by a share that has no scale.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lancet {

/// Of its residual, what a request of middling key gets alone by `method`: more where keys are to get nearly all of it
/// (EMMET), where a part of what was found is written (PMET), and where the change acts where text is not (AlphaEdit).
double automatic_share(std::string_view method);

/// Of MEMIT and its kin: the last five of the first three tenths of the layers. 32 layers: 4 to 8, the published choice
/// for Llama.
std::vector<int64_t> automatic_layers(int64_t n_layers);

/// ROME's one layer, at a sixth of the depth. 32 layers: 5, as published.
int64_t automatic_rome_layer(int64_t n_layers);

/// UltraEdit's: from the middle on an eighth of the depth, at most five. Published for 32 layers: 11 to 15 and 18
/// to 24.
std::vector<int64_t> automatic_middle_layers(int64_t n_layers);

/// Fine-tuning's one layer, at two thirds of the depth. 32 layers: 21, as published.
int64_t automatic_tuned_layer(int64_t n_layers);

}  // namespace lancet
