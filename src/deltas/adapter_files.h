// Names that the writer and the reader of adapters share.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

inline constexpr std::string_view kAdapterPrefix = "base_model.model.";
/// The ends of the names of the right and the left factor, after the module's name.
inline constexpr std::string_view kLoraA = ".lora_A.weight";
inline constexpr std::string_view kLoraB = ".lora_B.weight";

/// The end of names in `target_parameters` that lancet understands: the down projections of all experts in one
/// parameter.
inline constexpr std::string_view kDownParameter = "down_proj";

}  // namespace lancet
