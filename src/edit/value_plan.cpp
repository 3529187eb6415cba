#include "value_plan.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "lancet/edit/value_memory.h"
#include "lancet/models/batching.h"

namespace lancet {
namespace {

/// Tokens that a step runs for a request when its rows are as long as the longest: from the subject's last one on.
int64_t step_tokens(const PreparedRequest& request) {
  int64_t longest = 0;
  for (const LocatedPrompt& prompt : request.prompts)
    longest = std::max(longest, static_cast<int64_t>(prompt.ids.size()) - prompt.lookup);
  const int64_t suffix = longest + static_cast<int64_t>(request.target.size()) - 1;
  return static_cast<int64_t>(request.prompts.size()) * suffix + 1;
}

}  // namespace

std::vector<std::vector<int64_t>> plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests,
                                                     int64_t layer, int64_t batch) {
  std::vector<int64_t> tokens;
  for (const PreparedRequest& request : requests) tokens.push_back(step_tokens(request));
  if (batch == 0) {
    const ValueWork work{model.config(), model.placement().weight_dtype(), layer, value_shape(requests)};
    const int64_t all = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
    return plan_batches(tokens, value_step_tokens(work, model.placement(), all));
  }
  std::vector<int64_t> order(requests.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return tokens[static_cast<size_t>(a)] < tokens[static_cast<size_t>(b)];
  });
  std::vector<std::vector<int64_t>> batches;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % static_cast<size_t>(batch) == 0) batches.emplace_back();
    batches.back().push_back(order[i]);
  }
  return batches;
}

}  // namespace lancet
