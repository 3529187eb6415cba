#include "feedback.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/gram.h"

namespace lancet {

Tensor feedback_factor(const Tensor& importance, double damping, const std::string& name) {
  // Reversed, the lower factor of Cholesky is the upper one.
  Tensor reversed = importance.to(at::kDouble).flip({0, 1});
  Tensor diagonal = reversed.diagonal();
  diagonal.add_(diagonal.mean() * damping);
  diagonal.masked_fill_(diagonal.eq(0), 1);
  Tensor lower = cholesky_in_place(std::move(reversed));
  if (!lower.defined() || !lower.diagonal().isfinite().all().item<bool>())
    throw NumericError(cat(name, ": the importance of its inputs is not positive definite with ", damping,
                           " of its diagonal's mean added: expected second moments of inputs, all finite"));
  Tensor factor = lower.flip({0, 1});
  lower.reset();
  return factor.div_(factor.diagonal().clone().unsqueeze(0));
}

}  // namespace lancet
