#include "lancet/editing/solvers.h"

#include <torch/types.h>

#include <cmath>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/stream_state.h"
#include "lancet/kernels/gram.h"
#include "triangular.h"

namespace lancet {
namespace {

/// Solves with one triangular matrix, or with diagonal blocks [E, W, W].
Tensor solve_triangular(const Tensor& matrix, const Tensor& right_FN, bool upper) {
  if (matrix.dim() == 2) return at::linalg_solve_triangular(matrix, right_FN, upper);
  return at::linalg_solve_triangular(matrix, right_FN.unflatten(0, {matrix.size(0), -1}), upper).flatten(0, 1);
}

}  // namespace

Tensor solve_lower(const Tensor& lower, const Tensor& right) { return solve_triangular(lower, right, /*upper=*/false); }

Tensor solve_transposed(const Tensor& lower, const Tensor& right) {
  return solve_triangular(lower.mT(), right, /*upper=*/true);
}

namespace {

/// Solves (I + gram) x = right for a positive semidefinite gram, and overwrites the memory of `gram`.
Tensor solve_lifted(Tensor gram, const Tensor& right) {
  gram.diagonal().add_(1.0);
  const Tensor lower = cholesky_in_place(std::move(gram));
  // I + gram is positive definite as long as it is finite: rounding cannot change this, because its eigenvalues are at
  // least 1.
  if (!lower.defined()) throw NumericError("ridge solve: keys or factor have NaN or Inf, or are too large to square");
  return solve_transposed(lower, solve_lower(lower, right));
}

/// Computes (I + Z Z^T)^-1 Z_new, where Z = [history, new]. It equals the columns of the new keys in Z (I + Z^T Z)^-1,
/// so it is computed in the smaller of the two spaces unless `space` says which.
Tensor adjust(const Tensor& new_FN, const Tensor& history_FM, SolveSpace space) {
  const Tensor all_FM = joined_columns(history_FM, new_FN);
  const bool fewer_keys = all_FM.size(1) <= all_FM.size(0);
  if (space == SolveSpace::kAuto) space = fewer_keys ? SolveSpace::kKeys : SolveSpace::kWeights;
  if (space == SolveSpace::kWeights) return solve_lifted(torch::matmul(all_FM, all_FM.t()), new_FN);
  const int64_t n_all = all_FM.size(1);
  const Tensor select_MN = torch::eye(n_all, all_FM.options()).slice(1, n_all - new_FN.size(1));
  return torch::matmul(all_FM, solve_lifted(torch::matmul(all_FM.t(), all_FM), select_MN));
}

}  // namespace

LowRankDelta solve_ridge(const RidgeProblem& problem, SolveSpace space) {
  const torch::NoGradGuard no_grad;
  if (!(problem.covariance_weight > 0)) throw std::logic_error("solve_ridge: covariance_weight must be positive");
  const double scale = 1.0 / std::sqrt(problem.covariance_weight);
  const auto whitened = [&](const Tensor& keys) { return solve_lower(problem.lower_FF, keys).mul_(scale); };
  const Tensor history_FM = problem.history_FM.defined() ? whitened(problem.history_FM) : Tensor();
  const Tensor adjusted_FN = adjust(whitened(problem.keys_FN), history_FM, space);
  const Tensor right_FN = solve_transposed(problem.lower_FF, adjusted_FN).mul_(scale);
  return {problem.residuals_DN, right_FN.t().contiguous()};
}

Tensor solve_positive(Tensor system, const Tensor& right, const char* what) {
  const torch::NoGradGuard no_grad;
  const Tensor lower = cholesky_in_place(std::move(system));
  if (!lower.defined()) throw NumericError(what);
  return solve_transposed(lower, solve_lower(lower, right));
}

Tensor leverages(const Tensor& lower_FF, const Tensor& keys_FN) {
  const torch::NoGradGuard no_grad;
  return solve_lower(lower_FF, keys_FN).square().sum(0);
}

Tensor lift_factor(const Tensor& lower_FF, double covariance_weight, double identity_weight) {
  const torch::NoGradGuard no_grad;
  Tensor system_FF = torch::matmul(lower_FF, lower_FF.mT());
  system_FF.diagonal(0, -2, -1).add_(identity_weight / covariance_weight);
  Tensor lifted = cholesky_in_place(std::move(system_FF));
  if (!lifted.defined()) throw NumericError("the covariance's factor has NaN or Inf");
  return lifted;
}

EqualitySolution solve_equality(const EqualityProblem& problem) {
  const torch::NoGradGuard no_grad;
  if (!(problem.covariance_weight > 0)) throw std::logic_error("solve_equality: covariance_weight must be positive");
  const double scale = 1.0 / std::sqrt(problem.covariance_weight);
  const Tensor white_FN = solve_lower(problem.lower_FF, problem.keys_FN).mul_(scale);
  Tensor gram_NN = torch::matmul(white_FN.t(), white_FN);
  gram_NN.diagonal().add_(problem.slack);
  const Tensor diagonal_N = gram_NN.diagonal().clone();
  const Tensor lower_NN = cholesky_in_place(std::move(gram_NN));
  // rounding can turn a zero pivot of a singular matrix into a number of this size
  const double rounding = static_cast<double>(white_FN.size(1)) * std::numeric_limits<double>::epsilon();
  if (!lower_NN.defined() || (lower_NN.diagonal().square() <= rounding * diagonal_N).any().item<bool>())
    throw NumericError(
        "equality solve: the keys depend on one another, or are not finite: they cannot all get their values. Set "
        "editor.slack above 0, or editor.equal_keys to split");
  const Tensor adjusted_FN = solve_transposed(lower_NN, solve_lower(lower_NN, white_FN.t())).t();
  const Tensor right_FN = solve_transposed(problem.lower_FF, adjusted_FN).mul_(scale);
  const Tensor inverse_NN =
      solve_transposed(lower_NN, solve_lower(lower_NN, torch::eye(lower_NN.size(0), lower_NN.options())));
  return {{problem.residuals_DN, right_FN.t().contiguous()}, inverse_NN};
}

LowRankDelta solve_rank_one(const RankOneProblem& problem) {
  const torch::NoGradGuard no_grad;
  Tensor u_F1 = problem.direction_F.unsqueeze(1);
  if (problem.lower_FF.defined()) u_F1 = solve_transposed(problem.lower_FF, solve_lower(problem.lower_FF, u_F1));
  const double product = torch::matmul(u_F1.t(), problem.key_F).item<double>();
  const double size = u_F1.norm().item<double>() * problem.key_F.norm().item<double>();
  if (!(std::abs(product) > size * std::numeric_limits<double>::epsilon()))
    throw NumericError(cat("rank-one solve: the key's product with the update's direction is ", product,
                           ", at norms of ", size, " together: no change in that direction reaches the key's value"));
  return {problem.residual_D.unsqueeze(1), u_F1.t().contiguous() / product};
}

LowRankDelta solve_null_space(const NullSpaceProblem& problem, SolveSpace space) {
  const torch::NoGradGuard no_grad;
  if (!(problem.ridge > 0)) throw std::logic_error("solve_null_space: ridge must be positive");
  const double scale = 1.0 / std::sqrt(problem.ridge);
  const auto projected = [&](const Tensor& keys) { return problem.null_space.project(keys).mul_(scale); };
  const Tensor history_FM = problem.history_FM.defined() ? projected(problem.history_FM) : Tensor();
  const Tensor adjusted_FN = adjust(projected(problem.keys_FN), history_FM, space).mul(scale);
  return {problem.residuals_DN, adjusted_FN.t().contiguous()};
}

LowRankDelta solve_projected(const Tensor& projected_FN, double ridge, const Tensor& residuals_DN) {
  const torch::NoGradGuard no_grad;
  if (!(ridge > 0)) throw std::logic_error("solve_projected: ridge must be positive");
  const double scale = 1.0 / std::sqrt(ridge);
  return {residuals_DN, adjust(projected_FN * scale, {}, SolveSpace::kAuto).mul(scale).t().contiguous()};
}

LowRankDelta solve_in_subspace(const SubspaceProblem& problem) {
  const torch::NoGradGuard no_grad;
  const auto within = [&](const Tensor& keys) {
    return keys.defined() ? torch::matmul(problem.basis_FQ.t(), keys) : Tensor();
  };
  const Tensor adjusted_QN = adjust(within(problem.keys_FN), within(problem.history_FM), SolveSpace::kAuto);
  return {problem.residuals_DN, torch::matmul(problem.basis_FQ, adjusted_QN).t().contiguous()};
}

Tensor whitened_basis(const Tensor& vectors_FQ, const Tensor& lower_FF, double weight, double ridge) {
  const torch::NoGradGuard no_grad;
  const Tensor part_QF = torch::matmul(vectors_FQ.t(), lower_FF);
  Tensor system_QQ = torch::matmul(part_QF, part_QF.t()).mul_(weight);
  system_QQ.diagonal().add_(ridge);
  const Tensor lower_QQ = cholesky_in_place(std::move(system_QQ));
  if (!lower_QQ.defined()) throw NumericError("the covariance's factor has NaN or Inf");
  return solve_lower(lower_QQ, vectors_FQ.t()).t();
}

LowRankDelta solve_least_squares(const Tensor& inputs_MI, const Tensor& values_MO, SolveSpace space) {
  const torch::NoGradGuard no_grad;
  return {values_MO.t().contiguous(), adjust(inputs_MI.t(), {}, space).t().contiguous()};
}

}  // namespace lancet
