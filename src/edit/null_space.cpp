#include "lancet/edit/null_space.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

Tensor NullSpace::project(const Tensor& columns_FN) const {
  if (basis == Basis::kProjection) return torch::matmul(basis_FQ, columns_FN);
  const Tensor within_FN = torch::matmul(basis_FQ, torch::matmul(basis_FQ.t(), columns_FN));
  return basis == Basis::kNullSpace ? within_FN : columns_FN - within_FN;
}

NullSpace make_null_space(const Tensor& covariance_FF, double threshold, const std::string& where) {
  const torch::NoGradGuard no_grad;
  if (!covariance_FF.isfinite().all().item<bool>())
    throw NumericError(
        cat(where, ": the covariance has NaN or Inf: the statistics are damaged, remove them from the cache"));
  const auto [spectrum_F, vectors_FF] = at::linalg_eigh(covariance_FF);  // ascending
  const int64_t size = spectrum_F.size(0), rank = (spectrum_F < threshold).sum().item<int64_t>();
  if (rank == 0 || rank == size)
    throw NumericError(cat(where, ": ", rank == 0 ? "no" : "every", " eigenvalue of the covariance is below ",
                           threshold, ": ", rank == 0 ? "no change would be left" : "nothing would be protected",
                           ". They go from ", spectrum_F[0].item<double>(), " over a median of ",
                           spectrum_F[size / 2].item<double>(), " to ", spectrum_F[-1].item<double>(),
                           ": set editor.null_space_below between them"));
  if (2 * rank <= size) return {vectors_FF.slice(1, 0, rank).contiguous(), NullSpace::Basis::kNullSpace, rank};
  return {vectors_FF.slice(1, rank).contiguous(), NullSpace::Basis::kComplement, rank};
}

}  // namespace lancet
