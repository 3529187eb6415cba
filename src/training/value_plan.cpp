#include "lancet/training/value_plan.h"

#include <torch/types.h>

#include <algorithm>
#include <numeric>

#include "lancet/models/batching.h"
#include "lancet/runtime/collectives.h"
#include "lancet/training/value_memory.h"

namespace lancet {
namespace {

/// Tokens that a step runs for a request when its rows are as long as the longest: from the subject's last one on.
int64_t step_tokens(const PreparedRequest& request, const ValueOptions& options) {
  return in_groups(value_shape({&request, 1}), options.contexts_per_step).step_tokens();
}

}  // namespace

RowBatches plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                              const ValueOptions& options, Communicator& communicator) {
  int64_t most_tokens = 0;
  std::vector<int64_t> tokens;
  communicator.run_collectively("values", [&] {
    for (const PreparedRequest& request : requests) tokens.push_back(step_tokens(request, options));
    if (!communicator.is_root() || options.batch > 0) return;
    const int64_t below = first_step_layer(model.config(), options.site, layer) - 1;  // what is run once
    const ValueWork work{model.config(), model.placement().weight_dtype(), below,
                         in_groups(value_shape(requests), options.contexts_per_step)};
    const int64_t all_tokens = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
    most_tokens = value_step_tokens(work, model.placement(), all_tokens);
  });
  most_tokens = broadcast_numbers(communicator, {most_tokens}).front();
  if (options.batch > 0) return plan_batches(tokens, {.rows = options.batch});
  return plan_batches(tokens, {.tokens = most_tokens});
}

std::vector<int64_t> heaviest_requests(std::span<const PreparedRequest> requests, const ValueOptions& options,
                                       RowBatches batches, int64_t n_batches) {
  const auto padded_tokens = [&](const std::vector<int64_t>& indices) {
    int64_t longest = 0;
    for (const int64_t index : indices)
      longest = std::max(longest, step_tokens(requests[static_cast<size_t>(index)], options));
    return longest * static_cast<int64_t>(indices.size());
  };
  std::stable_sort(batches.begin(), batches.end(),
                   [&](const auto& a, const auto& b) { return padded_tokens(a) > padded_tokens(b); });
  batches.resize(std::min(batches.size(), static_cast<size_t>(n_batches)));
  std::vector<int64_t> heaviest;
  for (const std::vector<int64_t>& indices : batches) heaviest.insert(heaviest.end(), indices.begin(), indices.end());
  return heaviest;
}

}  // namespace lancet
