#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/edit/activations.h"
#include "lancet/edit/editor.h"

namespace lancet {

Tensor EditContext::collect_keys(std::span<const PreparedRequest> requests, int64_t layer) const {
  const torch::NoGradGuard no_grad;
  std::vector<const LocatedPrompt*> rows;
  for (const PreparedRequest& request : requests)
    for (const LocatedPrompt& prompt : request.prompts) rows.push_back(&prompt);
  const int64_t n_contexts = static_cast<int64_t>(requests[0].prompts.size());
  const Tensor keys_NXF =
      to_solve_device(collect_at(model_, rows, {HookPoint::kMlpKey, layer}), layer).unflatten(0, {-1, n_contexts});
  const Tensor plain_NF = keys_NXF.select(1, 0);
  if (n_contexts == 1) return plain_NF.t();
  return (0.5 * plain_NF + 0.5 * keys_NXF.slice(1, 1).mean(1)).t();
}

Tensor EditContext::collect_hidden(std::span<const PreparedRequest> requests, int64_t layer) const {
  const torch::NoGradGuard no_grad;
  std::vector<const LocatedPrompt*> rows;
  for (const PreparedRequest& request : requests) rows.push_back(&request.prompts[0]);
  return to_solve_device(collect_at(model_, rows, {HookPoint::kBlockOut, layer}), layer);
}

Tensor EditContext::covariance_factor(int64_t layer) const {
  Tensor factor = factors_(layer);
  check_device(factor, model_.placement().solve_device(layer), cat("factor of layer ", layer, "'s covariance"));
  return factor;
}

Tensor EditContext::to_solve_device(const Tensor& tensor, int64_t layer) const {
  const Placement& placement = model_.placement();
  return tensor.to(placement.solve_device(layer), placement.solve_dtype());
}

}  // namespace lancet
