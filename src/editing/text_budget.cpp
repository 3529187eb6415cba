#include "lancet/editing/text_budget.h"

#include <torch/types.h>

#include <stdexcept>
#include <utility>

#include "lancet/core/error.h"
#include "triangular.h"

namespace lancet {
namespace {

constexpr int kHalvings = 100;

}  // namespace

double energy_on_text(const Tensor& weight_DF, const Tensor& lower_FF) {
  const torch::NoGradGuard no_grad;
  if (lower_FF.dim() == 2) return torch::matmul(weight_DF, lower_FF).square().sum().item<double>();
  const Tensor blocks_EDF = weight_DF.unflatten(1, {lower_FF.size(0), -1}).transpose(0, 1);
  return torch::matmul(blocks_EDF, lower_FF).square().sum().item<double>();
}

BudgetSolution solve_within_budget(const BudgetProblem& problem) {
  const torch::NoGradGuard no_grad;
  if (!(problem.covariance_weight > 0 && problem.most > 0))
    throw std::logic_error("solve_within_budget: weight and budget must be positive");
  // With Y = L^-1 K and Y Y^T = V s V^T, T' L is U Y^T V (s + mu)^-1 V^T. If there are fewer keys than dimensions, V =
  // Y Q s^-1/2 because Y^T Y = Q s Q^T, so that U Y^T V is U Q s^1/2.
  const Tensor white_FM = solve_lower(problem.lower_FF, problem.keys_FM);
  const bool fewer_keys = white_FM.size(1) <= white_FM.size(0);
  const Tensor gram = fewer_keys ? torch::matmul(white_FM.t(), white_FM) : torch::matmul(white_FM, white_FM.t());
  if (!gram.isfinite().all().item<bool>())
    throw NumericError("text budget: keys or factor have NaN or Inf, or are too large to square");
  const auto [spectrum, vectors] = at::linalg_eigh(gram);
  const Tensor s_R = spectrum.clamp_min(0);
  const Tensor weight_R = fewer_keys
                              ? torch::matmul(problem.changes_DM, vectors).square().sum(0) * s_R
                              : torch::matmul(torch::matmul(problem.changes_DM, white_FM.t()), vectors).square().sum(0);
  // D falls when mu grows
  const auto energy = [&](double mu) { return (weight_R / (s_R + mu).square()).sum().item<double>(); };
  double mu = problem.covariance_weight;
  if (energy(mu) > problem.most) {
    double low = mu;
    while (energy(mu) > problem.most) low = std::exchange(mu, 2 * mu);
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = low + (mu - low) / 2;
      (energy(middle) > problem.most ? low : mu) = middle;
    }
  }
  const Tensor inverse = torch::matmul(vectors / (s_R + mu), vectors.t());
  const Tensor adjusted_FM = fewer_keys ? torch::matmul(white_FM, inverse) : torch::matmul(inverse, white_FM);
  const Tensor right_FM = solve_transposed(problem.lower_FF, adjusted_FM);
  return {{problem.changes_DM, right_FM.t().contiguous()}, mu, energy(mu)};
}

}  // namespace lancet
