#include "lancet/deltas/delta_filters.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

namespace lancet {

DenseDelta keep_largest_relative(const Tensor& weight, const WeightDelta& delta, double share) {
  const torch::NoGradGuard no_grad;
  const Tensor change_OI = to_dense(delta);
  const Tensor relative = (change_OI / (weight.to(change_OI.scalar_type()) + 1e-8)).abs().flatten();
  const int64_t size = relative.numel();
  const int64_t kept = std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(size)), 1, size);
  const Tensor least = std::get<0>(relative.kthvalue(size - kept + 1));
  return {change_OI * (relative >= least).view_as(change_OI)};
}

Tensor restrain_spectrum(const Tensor& base, const Tensor& change, double log_base) {
  const torch::NoGradGuard no_grad;
  const double limit = at::linalg_svdvals(base.to(at::kDouble))[0].item<double>();
  const auto [u_OR, s_R, vt_RI] = at::linalg_svd(change.to(at::kDouble), /*full_matrices=*/false);
  const Tensor restrained_R =
      torch::where(s_R > limit, (s_R.log() - std::log(limit)) / std::log(log_base) + limit, s_R);
  // only what is above the limit changes: the rest keeps its bits
  return change.to(at::kDouble) + torch::matmul(u_OR * (restrained_R - s_R), vt_RI);
}

}  // namespace lancet
