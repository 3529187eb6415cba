#include "adapter_factors.h"

#include <torch/types.h>

#include <algorithm>

namespace lancet {
namespace {

Tensor on_host_f64(const Tensor& tensor) { return tensor.to(Placement::host(), at::kDouble); }

/// A tall matrix as a product of orthonormal columns and a small factor. A wide matrix is its own small factor.
struct TallParts {
  Tensor basis;  ///< undefined: the identity matrix
  Tensor small;
};

TallParts tall_parts(const Tensor& matrix) {
  if (matrix.size(0) <= matrix.size(1)) return {{}, matrix};
  auto [basis, small] = at::linalg_qr(matrix, "reduced");
  return {basis, small};
}

Tensor times(const Tensor& basis, const Tensor& small) { return basis.defined() ? basis.mm(small) : small; }

}  // namespace

LowRankDelta summed_factors(std::span<const WeightDelta> deltas, int64_t n_outputs, int64_t n_inputs) {
  std::vector<Tensor> left, right;
  int64_t directions = 0;
  for (const WeightDelta& delta : deltas) {
    const auto* low_rank = std::get_if<LowRankDelta>(&delta);
    if (low_rank == nullptr) break;
    left.push_back(on_host_f64(low_rank->left_OR));
    right.push_back(on_host_f64(low_rank->right_RI));
    directions += low_rank->left_OR.size(1);
  }
  const bool all_low_rank = left.size() == deltas.size();
  if (all_low_rank && !left.empty() && directions < std::min(n_outputs, n_inputs))
    return {torch::cat(left, 1), torch::cat(right, 0)};
  Tensor sum = torch::zeros({n_outputs, n_inputs}, torch::kDouble);
  for (const WeightDelta& delta : deltas) {
    if (const auto* low_rank = std::get_if<LowRankDelta>(&delta))
      sum.addmm_(on_host_f64(low_rank->left_OR), on_host_f64(low_rank->right_RI));
    else
      sum += on_host_f64(std::get<DenseDelta>(delta).full_OI);
  }
  const Tensor identity = torch::eye(std::min(n_outputs, n_inputs), torch::kDouble);
  return n_outputs <= n_inputs ? LowRankDelta{identity, sum} : LowRankDelta{sum, identity};
}

LowRankDelta without_zeros(const LowRankDelta& factors) {
  const Tensor used_R = (factors.left_OR != 0).any(0).logical_and((factors.right_RI != 0).any(1));
  if (used_R.all().item<bool>()) return factors;
  return {factors.left_OR.index({torch::indexing::Slice(), used_R}), factors.right_RI.index({used_R})};
}

double Spectrum::norm() const { return norm_beyond(0); }

double Spectrum::norm_beyond(int64_t rank) const {
  return values_K.slice(0, std::min(rank, values_K.size(0))).norm().item<double>();
}

int64_t Spectrum::numeric_rank(double tolerance) const {
  const double most = tolerance * norm();
  int64_t rank = 1;
  while (rank < values_K.size(0) && norm_beyond(rank) > most) ++rank;
  return rank;
}

LowRankDelta Spectrum::balanced(int64_t rank) const {
  const int64_t kept = std::min(rank, values_K.size(0));
  const Tensor roots_K = values_K.slice(0, 0, kept).sqrt();
  return {left_OK.slice(1, 0, kept) * roots_K, right_KI.slice(0, 0, kept) * roots_K.unsqueeze(1)};
}

Spectrum spectrum_of(const LowRankDelta& factors) {
  const TallParts left = tall_parts(factors.left_OR), right = tall_parts(factors.right_RI.t());
  const auto [u, values, vh] = at::linalg_svd(left.small.mm(right.small.t()), /*full_matrices=*/false);
  return {times(left.basis, u), values, times(right.basis, vh.t()).t()};
}

double difference_norm(const LowRankDelta& a, const LowRankDelta& b) {
  const Tensor left = torch::cat({a.left_OR, -b.left_OR}, 1), right = torch::cat({a.right_RI, b.right_RI}, 0);
  return tall_parts(left).small.mm(tall_parts(right.t()).small.t()).norm().item<double>();
}

}  // namespace lancet
