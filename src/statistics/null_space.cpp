#include "lancet/statistics/null_space.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

Tensor NullSpace::project(const Tensor& columns_FN) const {
  if (basis_FQ.dim() == 3)
    return torch::matmul(basis_FQ, columns_FN.unflatten(0, {basis_FQ.size(0), -1})).flatten(0, 1);
  if (basis == Basis::kProjection) return torch::matmul(basis_FQ, columns_FN);
  const Tensor within_FN = torch::matmul(basis_FQ, torch::matmul(basis_FQ.t(), columns_FN));
  return basis == Basis::kNullSpace ? within_FN : columns_FN - within_FN;
}

Tensor NullSpace::projector() const {
  return basis == Basis::kProjection ? basis_FQ : project(torch::eye(basis_FQ.size(0), basis_FQ.options()));
}

namespace {

/// Returns the smallest eigenvalue that does not belong to the null space. `spectrum_F`: ascending.
double threshold_of(const Tensor& spectrum_F, double share) {
  const double size = static_cast<double>(spectrum_F.size(0));
  return spectrum_F[static_cast<int64_t>(std::clamp(std::round(share * size), 1.0, size - 1))].item<double>();
}

}  // namespace

NullSpace make_null_space(const Tensor& covariance_FF, const NullSpaceRule& rule, const std::string& where,
                          KeptBasis kept) {
  const torch::NoGradGuard no_grad;
  if (!covariance_FF.isfinite().all().item<bool>())
    throw NumericError(
        cat(where, ": the covariance has NaN or Inf: the statistics are damaged, remove them from the cache"));
  const auto [spectra, vectors_FF] = at::linalg_eigh(covariance_FF);  // ascending
  // the blocks of all experts share one spectrum
  const Tensor spectrum_F = spectra.dim() == 1 ? spectra : std::get<0>(spectra.flatten().sort());
  const double threshold = rule.below ? *rule.below : threshold_of(spectrum_F, rule.share);
  const int64_t size = spectrum_F.size(0), rank = (spectrum_F < threshold).sum().item<int64_t>();
  if (rank == 0 || rank == size)
    throw NumericError(cat(where, ": ", rank == 0 ? "no" : "every", " eigenvalue of the covariance is below ",
                           threshold, ": ", rank == 0 ? "no change would be left" : "nothing would be protected",
                           ". They go from ", spectrum_F[0].item<double>(), " over a median of ",
                           spectrum_F[size / 2].item<double>(), " to ", spectrum_F[-1].item<double>(),
                           ": set editor.null_space_below between them"));
  if (covariance_FF.dim() == 3) {
    const Tensor own = vectors_FF * (spectra < threshold).unsqueeze(1);
    return {torch::matmul(own, own.mT()), NullSpace::Basis::kProjection, rank, threshold};
  }
  if (2 * rank <= size || kept == KeptBasis::kNullSpace)
    return {vectors_FF.slice(1, 0, rank).contiguous(), NullSpace::Basis::kNullSpace, rank, threshold};
  return {vectors_FF.slice(1, rank).contiguous(), NullSpace::Basis::kComplement, rank, threshold};
}

}  // namespace lancet
