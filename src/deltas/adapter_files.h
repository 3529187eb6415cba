// What the adapter's writer and reader must agree on.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

inline constexpr std::string_view kAdapterPrefix = "base_model.model.";
/// Ends of the names of the right factor and of the left one, after the module's name.
inline constexpr std::string_view kLoraA = ".lora_A.weight";
inline constexpr std::string_view kLoraB = ".lora_B.weight";

/// End of the names in `target_parameters` that are understood: all experts' down projections in one parameter.
inline constexpr std::string_view kDownParameter = "down_proj";

}  // namespace lancet
