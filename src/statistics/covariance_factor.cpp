#include "lancet/statistics/covariance_factor.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/cholesky.h"

namespace lancet {
namespace {

/// The smallest power of ten of the ridge that lifts the spectrum above rounding.
double sufficient_ridge(double smallest, double largest, double mean_diagonal, int64_t size) {
  const double rounding = largest * static_cast<double>(size) * std::numeric_limits<double>::epsilon();
  const double needed = (std::max(-smallest, 0.0) + 10.0 * rounding) / mean_diagonal;
  return std::pow(10.0, std::ceil(std::log10(needed)));
}

NumericError not_definite(const Tensor& covariance_FF, double mean, double ridge, const std::string& where) {
  if (!covariance_FF.isfinite().all().item<bool>())
    return NumericError(
        cat(where, ": the covariance has NaN or Inf: the statistics are damaged, remove them from the cache"));
  if (!(mean > 0))
    return NumericError(
        cat(where, ": the covariance has the mean diagonal ", mean, ", expected a positive one: no key ",
            "of this layer is in it. Look at the imported file, or at the layer's weights in the model;",
            " statistics from the cache: remove them, they are made again"));
  const Tensor spectrum = at::linalg_eigvalsh(covariance_FF);
  const double smallest = spectrum[0].item<double>();
  const double needed = sufficient_ridge(smallest, spectrum[-1].item<double>(), mean, covariance_FF.size(0));
  return NumericError(cat(where, ": the covariance is not positive definite: smallest eigenvalue ", smallest,
                          " at mean diagonal ", mean, ", ridge ", ridge, ". Set statistics.ridge: ", needed,
                          " or use more tokens"));
}

/// Describes the matrix that has the smallest eigenvalue.
NumericError no_factor(const Tensor& covariance, double ridge, const std::string& where) {
  const double mean = mean_diagonal(covariance);
  if (covariance.dim() == 2 || !std::isfinite(mean) || !(mean > 0))
    return not_definite(covariance.dim() == 2 ? covariance : covariance.flatten(0, 1), mean, ridge, where);
  const auto expert = at::linalg_eigvalsh(covariance).select(-1, 0).argmin().item<int64_t>();
  return not_definite(covariance[expert], mean, ridge, cat(where, ", expert ", expert));
}

}  // namespace

double mean_diagonal(const Tensor& moments) { return moments.diagonal(0, -2, -1).mean().item<double>(); }

Tensor factor_covariance(const std::function<Tensor()>& covariance, double ridge, const std::string& where) {
  const torch::NoGradGuard no_grad;
  Tensor matrix_FF = covariance();
  if (ridge > 0) matrix_FF.diagonal(0, -2, -1).add_(ridge * mean_diagonal(matrix_FF));
  Tensor lower = cholesky_in_place(std::move(matrix_FF));
  if (!lower.defined()) throw no_factor(covariance(), ridge, where);
  return lower;
}

}  // namespace lancet
