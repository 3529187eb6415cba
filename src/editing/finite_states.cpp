#include "finite_states.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/models/finite.h"

namespace lancet {

void check_finite(const CausalLM& model, std::span<const PreparedRequest> requests, HookSite site,
                  const Tensor& value_NX) {
  if (value_NX.isfinite().all().item<bool>()) return;
  const std::vector<double> size_N = to_doubles(value_NX.norm(2, 1));
  const auto bad = std::find_if(size_N.begin(), size_N.end(), [](double size) { return !std::isfinite(size); });
  throw not_finite(model,
                   cat("request ", requests[static_cast<size_t>(bad - size_N.begin())].id, ": ",
                       site.point == HookPoint::kMlpKey ? "the key" : "the hidden state", " at layer ", site.layer,
                       " is not finite"),
                   "Changes before it drove the model out of range: lower editor.values.lr, hold them back more "
                   "(covariance_weight, ridge), or set run.dtype: f32");
}

}  // namespace lancet
