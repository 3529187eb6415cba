#include "lancet/pipeline/measure_standing.h"

#include <algorithm>

#include "lancet/eval/evaluate.h"

namespace lancet {

StandingMeasure measure_standing(const CausalLM& model, const ModelFiles& files, std::vector<EditRequest> requests,
                                 EvaluationOptions options, Communicator& communicator) {
  std::erase(options.protocols, "easyedit");
  options.side_effects = {};
  StandingMeasure measure{.requests = std::move(requests)};
  if (measure.requests.empty()) return measure;
  const EvaluationPlan plan(*files.tokenizer, measure.requests, options, files.config.max_positions);
  measure.now = plan.run(model, "evaluate earlier edits", communicator);
  return measure;
}

}  // namespace lancet
