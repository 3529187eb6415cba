#include "lancet/edit/solvers.h"

#include <torch/types.h>

#include <cmath>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Lower factor of a symmetric matrix; undefined when it is not positive definite.
Tensor try_cholesky(const Tensor& matrix) {
  const auto [lower, info] = at::linalg_cholesky_ex(matrix);
  return info.item<int>() == 0 ? lower : Tensor();
}

Tensor identity_like(const Tensor& matrix) { return torch::eye(matrix.size(0), matrix.options()); }

/// The smallest power of ten of the ridge that lifts the spectrum above rounding.
double sufficient_ridge(double smallest, double largest, double mean_diagonal, int64_t size) {
  const double rounding = largest * static_cast<double>(size) * std::numeric_limits<double>::epsilon();
  const double needed = (std::max(-smallest, 0.0) + 10.0 * rounding) / mean_diagonal;
  return std::pow(10.0, std::ceil(std::log10(needed)));
}

Tensor solve_in_key_space(const RidgeProblem& problem, const Tensor& all_keys_FM) {
  const double scale = std::sqrt(problem.covariance_weight);
  const Tensor& lower = problem.covariance.lower_FF;
  const Tensor z_FM = at::linalg_solve_triangular(lower, all_keys_FM, /*upper=*/false) / scale;
  const Tensor system = torch::matmul(z_FM.t(), z_FM) + torch::eye(z_FM.size(1), z_FM.options());
  const Tensor system_lower = try_cholesky(system);
  if (!system_lower.defined()) throw NumericError("ridge solve: I + Z^T Z is not definite: the keys have NaN or Inf");
  const int64_t n_new = problem.keys_FN.size(1);
  const Tensor select_MN = torch::eye(z_FM.size(1), z_FM.options()).slice(1, z_FM.size(1) - n_new);
  const Tensor weights_MN = torch::cholesky_solve(select_MN, system_lower);
  return at::linalg_solve_triangular(lower.t(), torch::matmul(z_FM, weights_MN), /*upper=*/true) / scale;
}

Tensor solve_in_weight_space(const RidgeProblem& problem, const Tensor& all_keys_FM) {
  const Tensor system =
      torch::addmm(problem.covariance.covariance_FF, all_keys_FM, all_keys_FM.t(), problem.covariance_weight, 1.0);
  const Tensor lower = try_cholesky(system);
  if (!lower.defined())
    throw NumericError(
        "ridge solve: lambda C + K K^T is not definite: raise statistics.ridge or the covariance weight");
  return torch::cholesky_solve(problem.keys_FN, lower);
}

}  // namespace

CovarianceFactor factor_covariance(const Tensor& covariance_FF, double ridge, const std::string& where) {
  const torch::NoGradGuard no_grad;
  const int64_t size = covariance_FF.size(0);
  const double mean_diagonal = covariance_FF.trace().item<double>() / static_cast<double>(size);
  const Tensor lifted =
      ridge > 0 ? covariance_FF + ridge * mean_diagonal * identity_like(covariance_FF) : covariance_FF;
  Tensor lower = try_cholesky(lifted);
  if (lower.defined()) return {lifted, lower};
  if (!covariance_FF.isfinite().all().item<bool>())
    throw NumericError(
        cat(where, ": the covariance has NaN or Inf: the statistics are damaged, remove them from the cache"));
  const Tensor spectrum = at::linalg_eigvalsh(covariance_FF);
  const double smallest = spectrum[0].item<double>();
  const double needed = sufficient_ridge(smallest, spectrum[-1].item<double>(), mean_diagonal, size);
  throw NumericError(cat(where, ": the covariance is not positive definite: smallest eigenvalue ", smallest,
                         " at mean diagonal ", mean_diagonal, ", ridge ", ridge, ". Set statistics.ridge: ", needed,
                         " or use more tokens"));
}

LowRankDelta solve_ridge(const RidgeProblem& problem, SolveSpace space) {
  const torch::NoGradGuard no_grad;
  if (!(problem.covariance_weight > 0)) throw std::logic_error("solve_ridge: covariance_weight must be positive");
  const Tensor all_keys_FM =
      problem.history_FM.defined() ? torch::cat({problem.history_FM, problem.keys_FN}, 1) : problem.keys_FN;
  const bool fewer_keys = all_keys_FM.size(1) <= all_keys_FM.size(0);
  if (space == SolveSpace::kAuto) space = fewer_keys ? SolveSpace::kKeys : SolveSpace::kWeights;
  const Tensor adjusted_FN = space == SolveSpace::kKeys ? solve_in_key_space(problem, all_keys_FM)
                                                        : solve_in_weight_space(problem, all_keys_FM);
  return {problem.residuals_DN, adjusted_FN.t().contiguous()};
}

}  // namespace lancet
