#include "automatic_options.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/editors/automatic_choices.h"

namespace lancet {

SolveWeight parse_solve_weight(ConfigSection& editor, const std::string& option) {
  SolveWeight weight{.option = option, .attained_share = automatic_share(editor.text("method", ""))};
  if (editor.is_map(option))
    weight.attained_share = parse_share(editor, option, "attained_share");
  else
    weight.number = editor.number_or_auto(option, {.min = 1e-300});
  return weight;
}

double parse_share(ConfigSection& editor, const std::string& option, const std::string& key) {
  ConfigSection section = editor.section(option);
  const double share = section.number(key, {.min = 1e-6, .max = 1 - 1e-6});
  section.finish();
  return share;
}

double weight_of_share(const Tensor& strengths_N, double share, const std::string& where) {
  const double middle = strengths_N.median().item<double>();  // of an even number the lower one
  const double weight = middle * (1 - share) / share;
  if (!(weight > 0) || !std::isfinite(weight))
    throw NumericError(cat(where, ": auto: the keys' strengths have a median of ", middle,
                           ": expected a finite number above 0: give the option a number, or look at the statistics"));
  return weight;
}

double choose_once(EditorState& state, EditOutcome& outcome, const std::string& option, int64_t layer,
                   const std::function<double()>& measure) {
  const std::string name = cat("auto.", option, ".", layer);
  if (!state.tensors.contains(name)) state.tensors.emplace(name, torch::tensor(measure(), torch::kDouble));
  const ChosenOption chosen{option, layer, state.tensors.at(name).item<double>()};
  if (std::find(outcome.chosen.begin(), outcome.chosen.end(), chosen) == outcome.chosen.end())
    outcome.chosen.push_back(chosen);
  return chosen.value;
}

}  // namespace lancet
