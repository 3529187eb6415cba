// Options that are `auto`: their values are chosen from the model and the first batch of a stream, and then stay.
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

/// The parameter of a solve that decides how much of its residual a request gets: lambda of MEMIT and its variants, L2
/// of AlphaEdit. A single request gets the share a = s / (weight + s), where s is the strength of its key. The weight
/// depends on the model's scale and the share does not, so one share fits all models.
struct SolveWeight {
  std::string option;                 ///< its name in the job; empty: the method has none
  std::optional<double> number = {};  ///< nullopt: chosen for each layer
  double realised_share = 0;          ///< the share a from which the weight is chosen
};

/// Parses `option`: a number, {realised_share: A}, or auto, the default, which means the declared share.
SolveWeight parse_solve_weight(ConfigSection& editor, const NumberOption& option);

/// Returns the number, within (0, 1), of the map that `option` is; nullopt if it is not a map.
std::optional<double> parse_share(ConfigSection& editor, const NumberOption& option);

/// Returns the weight with which at least half of the keys, each alone, get `share` of their residual: median(s) (1 -
/// a) / a. Throws: NumericError naming `where` if no weight does: the keys are 0, or not finite.
double weight_of_share(const Tensor& strengths_N, double share, const std::string& where);

/// Returns the value of an `auto` option in a layer: the state's, or else the result of `measure`, which the state then
/// keeps. Records the value in the outcome. `measure` must give the same result on every rank.
double choose_once(EditorState& state, EditOutcome& outcome, const std::string& option, int64_t layer,
                   const std::function<double()>& measure);

/// The context in which a weight is chosen.
struct WeightQuestion {
  const EditContext& context;
  EditorState& state;
  EditOutcome& outcome;
};

/// Returns a layer's SolveWeight: the job's number, or the weight that gives keys with these leverages their share.
double weight_for(const SolveWeight& weight, const WeightQuestion& asked, int64_t layer,
                  const std::function<Tensor()>& leverages);

// The projections that a method without a subject changes.

/// The modules for which a method has options.
enum class ModuleKinds { kAll, kDown };

/// Parses `modules: {gate: [layers], up: [...], down: [...]}` of an editor and sorts by layer; nullopt: auto.
std::optional<std::vector<WeightId>> parse_modules(ConfigSection& editor, ModuleKinds kinds = ModuleKinds::kAll);

/// The modules to change if the job names none.
enum class AutomaticModules {
  kMiddle,   ///< gate and up of the middle layers (UltraEdit)
  kOneDown,  ///< one down projection after the middle (fine-tuning)
  kLateDown  ///< some down projections after the middle, with statistics (CrispEdit)
};

/// Returns the weights to change. Throws: ConfigError if the model has no such layer.
std::vector<WeightId> modules_of(const std::optional<std::vector<WeightId>>& modules, AutomaticModules automatic,
                                 const ModelConfig& config);

/// Throws: ConfigError if that layer, which `option` of the editor names, has no MLP to change.
void check_has_mlp(std::string_view option, const ModelConfig& config, int64_t layer);

/// Throws: ConfigError if no value can be found at that layer, one of `layers` of the editor: it is the last layer or
/// has no MLP.
void check_value_layer(const ModelConfig& config, int64_t layer);

/// Parses `target_end` of an editor.
TargetEnd parse_target_end(ConfigSection& editor);

}  // namespace lancet
