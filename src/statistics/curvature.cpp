#include "lancet/statistics/curvature.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"

namespace lancet {

MomentSpectrum make_spectrum(const Tensor& moment_NN, int64_t tokens, const std::string& where) {
  const torch::NoGradGuard no_grad;
  if (!moment_NN.isfinite().all().item<bool>())
    throw NumericError(
        cat(where, ": the second moments have NaN or Inf: the statistics are damaged, remove them from the cache"));
  auto [values_N, vectors_NN] = at::linalg_eigh(moment_NN);  // ascending
  return {values_N.clamp_min(0), vectors_NN, tokens};        // rounding can make one negative
}

MomentSpectrum joined(const MomentSpectrum& text, const Tensor& rows_MN, const std::string& where) {
  const torch::NoGradGuard no_grad;
  const Tensor own_MN = rows_MN.to(text.values_N.device()).to(at::kDouble);
  const int64_t tokens = text.tokens + own_MN.size(0);
  const Tensor sum_NN =
      torch::matmul(text.vectors_NN * (text.values_N * static_cast<double>(text.tokens)), text.vectors_NN.t()) +
      torch::matmul(own_MN.t(), own_MN);
  return make_spectrum((sum_NN + sum_NN.t()) / (2.0 * static_cast<double>(tokens)), tokens, where);
}

LowCurvature find_low_curvature(const Curvature& curvature, double energy, const std::string& where) {
  const torch::NoGradGuard no_grad;
  const Tensor products_OI = torch::outer(curvature.gradients.values_N, curvature.inputs.values_N);
  // summed on the host, where the order of a sum is fixed
  const Tensor descending_P =
      std::get<0>(products_OI.flatten().sort(/*dim=*/0, /*descending=*/true)).to(Placement::host());
  const double total = descending_P.sum().item<double>();
  if (!(total > 0))
    throw NumericError(cat(where, ": the loss on text has no curvature there: expected second moments above 0"));
  const int64_t reached =
      // number of products before the one that reaches the share
      (descending_P.cumsum(0) < energy * total).sum().item<int64_t>();
  const double below = descending_P[std::min(reached, descending_P.numel() - 1)].item<double>();
  LowCurvature low{products_OI < below, below};
  if (!low.allowed_OI.any().item<bool>())
    throw NumericError(cat(where, ": nothing is left to change in: lower editor.energy, ", energy));
  return low;
}

}  // namespace lancet
