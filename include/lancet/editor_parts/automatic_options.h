// Options that are `auto`: what they stand for follows from the model and the first batch of a stream, and stays then.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"
#include "lancet/models/weight_table.h"
#include "lancet/spec/option.h"

namespace lancet {

/// The number of a solve that decides how much of its residual a request gets: lambda of MEMIT and its kin, L2 of
/// AlphaEdit. A request alone gets the share a = s / (weight + s), s its key's strength. The weight has a model's
/// scale, the share has none, so that one share fits all models.
struct SolveWeight {
  std::string option;                 ///< its name in the job; empty: the method has none
  std::optional<double> number = {};  ///< nullopt: chosen for each layer
  double realised_share = 0;          ///< a, where it is chosen
};

/// `option`: a number, {realised_share: A}, or auto, the default, which stands for the declared share.
SolveWeight parse_solve_weight(ConfigSection& editor, const NumberOption& option);

/// The number within (0, 1) of the map that `option` is; nullopt where it is none.
std::optional<double> parse_share(ConfigSection& editor, const NumberOption& option);

/// The weight with which at least half of the keys get `share` of their residual alone: median(s) (1 - a) / a.
/// Throws: NumericError naming `where` when none does it: the keys are 0, or not finite.
double weight_of_share(const Tensor& strengths_N, double share, const std::string& where);

/// What an option that is `auto` stands for in a layer: what the state says, or else `measure`, which the state then
/// keeps. Notes it in the outcome. Every rank gives the same `measure`.
double choose_once(EditorState& state, EditOutcome& outcome, const std::string& option, int64_t layer,
                   const std::function<double()>& measure);

/// Context in which a weight is asked for.
struct WeightQuestion {
  const EditContext& context;
  EditorState& state;
  EditOutcome& outcome;
};

/// A layer's SolveWeight: the number that the job gives, or what gives its keys, of these leverages, their share.
double weight_for(const SolveWeight& weight, const WeightQuestion& asked, int64_t layer,
                  const std::function<Tensor()>& leverages);

// The projections that a method without a subject changes.

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
