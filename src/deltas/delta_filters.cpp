#include "lancet/deltas/delta_filters.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Returns the matrix or its transpose in f64, with at most as many rows as columns.
Tensor wide(const Tensor& matrix) {
  const Tensor precise = matrix.to(at::kDouble);
  return matrix.size(0) <= matrix.size(1) ? precise : precise.t();
}

/// Returns the inner products of the rows. Their eigenvalues are the squares of the matrix's singular values, of which
/// only the large ones are needed. A decomposition of the matrix itself takes a minute for 4096 x 14336, and longer on
/// GPUs.
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

DominantSubspace dominant_subspace(const Tensor& weight, double energy, const std::string& where) {
  const torch::NoGradGuard no_grad;
  const Tensor wide_SL = wide(weight);
  const auto [squares_S, u_SS] = at::linalg_eigh(inner_products(wide_SL));  // ascending
  const std::vector<double> squares = to_doubles(squares_S);
  double all = 0;
  for (const double square : squares) all += std::max(0.0, square);
  const auto size = static_cast<int64_t>(squares.size());
  int64_t count = 0;
  for (double sum = 0; count < size && sum <= energy * all; ++count)
    sum += std::max(0.0, squares[static_cast<size_t>(size - 1 - count)]);
  if (count == size)
    throw NumericError(cat(where, ": editor.revive.energy: ", energy, ": all ", size,
                           " directions would stay, and no change would be left: lower it"));
  const Tensor short_SK = u_SS.narrow(1, size - count, count);
  const Tensor long_LK = torch::matmul(wide_SL.t(), short_SK) / squares_S.narrow(0, size - count, count).sqrt();
  const bool is_wide = weight.size(0) <= weight.size(1);
  return {(is_wide ? short_SK : long_LK).contiguous(), (is_wide ? long_LK : short_SK).contiguous()};
}

WeightDelta keep_dominant(const DominantSubspace& kept, const WeightDelta& delta) {
  const torch::NoGradGuard no_grad;
  const auto rows_free = [&](const Tensor& left_OX) {
    const Tensor u_OK = kept.left_OK.to(left_OX.options());
    return left_OX - torch::matmul(u_OK, torch::matmul(u_OK.t(), left_OX));
  };
  const auto columns_free = [&](const Tensor& right_XI) {
    const Tensor v_IK = kept.right_IK.to(right_XI.options());
    return right_XI - torch::matmul(torch::matmul(right_XI, v_IK), v_IK.t());
  };
  if (const auto* factors = std::get_if<LowRankDelta>(&delta))
    return LowRankDelta{rows_free(factors->left_OR), columns_free(factors->right_RI)};
  return DenseDelta{columns_free(rows_free(std::get<DenseDelta>(delta).full_OI))};
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
  // only the singular values above the limit change: the rest keeps its bits
  const Tensor restrained_SL =
      change_SL + torch::matmul(u_SK * ((restrained_K - s_K) / s_K), torch::matmul(u_SK.t(), change_SL));
  return change.size(0) <= change.size(1) ? restrained_SL : restrained_SL.t();
}

}  // namespace lancet
