// The projections that a method without a subject changes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// Modules that a method has options for.
enum class ModuleKinds { kAll, kDown };

/// `modules: {gate: [layers], up: [...], down: [...]}` of an editor, by layer; nullopt: auto.
std::optional<std::vector<WeightId>> parse_modules(ConfigSection& editor, ModuleKinds kinds = ModuleKinds::kAll);

/// Modules to take where nobody says which.
enum class AutomaticModules {
  kMiddle,   ///< gate and up of the middle layers (UltraEdit)
  kOneDown,  ///< one down projection after the middle (fine-tuning)
  kLateDown  ///< some down projections after the middle, with statistics (CrispEdit)
};

/// Returns the weights that are changed. Throws: ConfigError when the model has no such layer.
std::vector<WeightId> modules_of(const std::optional<std::vector<WeightId>>& modules, AutomaticModules automatic,
                                 const ModelConfig& config);

/// Throws: ConfigError when that layer, which `option` of the editor names, has no MLP to be changed.
void check_has_mlp(std::string_view option, const ModelConfig& config, int64_t layer);

/// Throws: ConfigError when no value can be found at that layer, one of `layers` of the editor: it is the last or has
/// no MLP.
void check_value_layer(const ModelConfig& config, int64_t layer);

/// `target_end` of an editor.
TargetEnd parse_target_end(ConfigSection& editor);

}  // namespace lancet
