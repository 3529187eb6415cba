#include <torch/types.h>

#include "lancet/edit/activations.h"
#include "lancet/edit/editor.h"

namespace lancet {

Tensor EditContext::collect(std::span<const PreparedRequest> requests, HookSite site, ContextMean mean) const {
  const torch::NoGradGuard no_grad;
  const int64_t n_contexts = mean == ContextMean::kPlain ? 1 : static_cast<int64_t>(requests[0].prompts.size());
  std::vector<const LocatedPrompt*> rows;
  for (const PreparedRequest& request : requests)
    for (int64_t c = 0; c < n_contexts; ++c) rows.push_back(&request.prompts[static_cast<size_t>(c)]);
  const Tensor value_NCX = to_solve_device(collect_at(model_, rows, site), site.layer).unflatten(0, {-1, n_contexts});
  const Tensor plain_NX = value_NCX.select(1, 0);
  if (n_contexts == 1) return plain_NX;
  if (mean == ContextMean::kFlat) return value_NCX.mean(1);
  return 0.5 * plain_NX + 0.5 * value_NCX.slice(1, 1).mean(1);
}

Tensor EditContext::collect_keys(std::span<const PreparedRequest> requests, int64_t layer, ContextMean mean) const {
  return collect(requests, {HookPoint::kMlpKey, layer}, mean).t();
}

WeightDelta EditContext::solve(int64_t, const std::function<WeightDelta()>& solve) const { return solve(); }

Tensor EditContext::to_solve_device(const Tensor& tensor, int64_t layer) const {
  const Placement& placement = model_.placement();
  return tensor.to(placement.solve_device(layer), placement.solve_dtype());
}

}  // namespace lancet
