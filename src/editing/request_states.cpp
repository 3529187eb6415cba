#include "lancet/editing/request_states.h"

#include <torch/types.h>

#include "finite_states.h"
#include "lancet/editing/editor.h"

namespace lancet {
namespace {

/// Prompts of contexts begin..end-1, request by request.
std::vector<const LocatedPrompt*> rows_of(std::span<const PreparedRequest> requests, size_t begin, size_t end) {
  std::vector<const LocatedPrompt*> rows;
  for (const PreparedRequest& request : requests)
    for (size_t c = begin; c < end; ++c) rows.push_back(&request.prompts[c]);
  return rows;
}

}  // namespace

RequestStates::RequestStates(const EditContext& context, std::span<const PreparedRequest> requests)
    : context_(context),
      requests_(requests),
      plain_(context.model_, rows_of(requests, 0, 1)),
      others_(context.model_, rows_of(requests, 1, requests.front().prompts.size())) {}

void RequestStates::keep_from(int64_t layer) {
  plain_.keep_from(layer);
  others_.keep_from(layer);
}

Tensor RequestStates::collect(HookSite site, ContextMean mean) {
  context_.check_all_are_here();
  const torch::NoGradGuard no_grad;
  const Tensor value_NX = mean_of(site, mean);
  check_finite(context_.model_, requests_, site, value_NX);
  return value_NX;
}

Tensor RequestStates::mean_of(HookSite site, ContextMean mean) {
  Communicator& ranks = context_.work_.communicator;
  const Tensor plain_NX = context_.to_solve_device(plain_.collect(site, ranks), site.layer);
  if (mean == ContextMean::kPlain || others_.empty()) return plain_NX;
  const Tensor others_NCX = context_.to_solve_device(others_.collect(site, ranks), site.layer)
                                .unflatten(0, {static_cast<int64_t>(requests_.size()), -1});
  if (mean == ContextMean::kFlat) return torch::cat({plain_NX.unsqueeze(1), others_NCX}, 1).mean(1);
  return 0.5 * plain_NX + 0.5 * others_NCX.mean(1);
}

Tensor RequestStates::collect_keys(int64_t layer, ContextMean mean) {
  return collect({HookPoint::kMlpKey, layer}, mean).t();
}

}  // namespace lancet
