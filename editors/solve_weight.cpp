#include <torch/types.h>

#include "lancet/core/strings.h"
#include "layer_passes.h"

namespace lancet {

double weight_for(const SolveWeight& weight, const EditContext& context, EditorState& state, EditOutcome& outcome,
                  const LayerProblem& problem, const std::function<Tensor(const LayerProblem&)>& strengths) {
  if (weight.option.empty() || weight.number) return weight.number.value_or(0);
  return choose_once(state, outcome, weight.option, problem.layer, [&] {
    const std::string where = cat("layer ", problem.layer, ": editor.", weight.option);
    const auto measure = [&] {
      return torch::tensor(weight_of_share(strengths(problem), weight.attained_share, where), torch::kDouble);
    };
    return context.decide_by(measure).item<double>();
  });
}

}  // namespace lancet
