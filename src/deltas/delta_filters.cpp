#include "lancet/deltas/delta_filters.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

namespace lancet {
namespace {

/// Returns the matrix in f64, with no more rows than columns.
Tensor wide(const Tensor& matrix) {
  const Tensor precise = matrix.to(at::kDouble);
  return matrix.size(0) <= matrix.size(1) ? precise : precise.t();
}

/// Multiplies the rows with each other. The product's eigenvalues are the squares of the matrix's singular values, the
/// large ones of which are all that is asked for: a decomposition of the matrix itself takes a minute for 4096 x 14336,
/// on GPUs more.
Tensor inner_products(const Tensor& matrix_SL) { return torch::matmul(matrix_SL, matrix_SL.t()); }

}  // namespace

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
  const double limit = std::sqrt(at::linalg_eigvalsh(inner_products(wide(base)))[-1].item<double>());
  const Tensor change_SL = wide(change);
  const auto [squares_S, u_SS] = at::linalg_eigh(inner_products(change_SL));  // ascending
  const int64_t above = (squares_S > limit * limit).sum().item<int64_t>();
  const Tensor s_K = squares_S.narrow(0, squares_S.size(0) - above, above).sqrt();
  const Tensor u_SK = u_SS.narrow(1, u_SS.size(1) - above, above);
  const Tensor restrained_K = (s_K.log() - std::log(limit)) / std::log(log_base) + limit;
  // only what is above the limit changes: the rest keeps its bits
  const Tensor restrained_SL =
      change_SL + torch::matmul(u_SK * ((restrained_K - s_K) / s_K), torch::matmul(u_SK.t(), change_SL));
  return change.size(0) <= change.size(1) ? restrained_SL : restrained_SL.t();
}

}  // namespace lancet
