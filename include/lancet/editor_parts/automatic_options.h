// Options that are `auto`: what they stand for follows from the model and the first batch of a stream, and stays then.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"
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

}  // namespace lancet
