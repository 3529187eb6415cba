#include "lancet/editor_parts/automatic_options.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/spec/read_option.h"

namespace lancet {

SolveWeight parse_solve_weight(ConfigSection& editor, const NumberOption& option) {
  SolveWeight weight{.option = std::string(option.key), .realised_share = option.share};
  if (const std::optional<double> share = parse_share(editor, option))
    weight.realised_share = *share;
  else
    weight.number = read_or_auto(editor, option);
  return weight;
}

std::optional<double> parse_share(ConfigSection& editor, const NumberOption& option) {
  if (!editor.is_map(option.key)) return std::nullopt;
  ConfigSection section = editor.section(option.key);
  const double share = section.number(option.share_key, kShareRange);
  section.finish();
  return share;
}

double weight_of_share(const Tensor& strengths_N, double share, const std::string& where) {
  const double middle = strengths_N.median().item<double>();  // of an even number the lower one
  const double weight = middle * (1 - share) / share;
  if (!(weight > 0) || !std::isfinite(weight))
    throw NumericError(cat(where, ": auto: the keys' leverages have a median of ", middle,
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

double weight_for(const SolveWeight& weight, const WeightQuestion& asked, int64_t layer,
                  const std::function<Tensor()>& leverages) {
  if (weight.option.empty() || weight.number) return weight.number.value_or(0);
  return choose_once(asked.state, asked.outcome, weight.option, layer, [&] {
    const std::string where = cat("layer ", layer, ": editor.", weight.option);
    const auto measure = [&] {
      return torch::tensor(weight_of_share(leverages(), weight.realised_share, where), torch::kDouble);
    };
    return asked.context.decide_by(measure).item<double>();
  });
}

}  // namespace lancet
