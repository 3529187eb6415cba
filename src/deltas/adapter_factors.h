// The algebra of adapters: sums of changes as one product, and the nearest product of fewer directions.
#pragma once

#include <span>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// The sum of changes of one matrix [out, in] as one product in f64 on the host. Of low-rank changes that together have
/// fewer directions than the matrix has rows or columns their own factors side by side; else the sum beside an
/// identity.
LowRankDelta summed_factors(std::span<const WeightDelta> deltas, int64_t n_outputs, int64_t n_inputs);

/// Drops the directions that have nothing but zeros on a side: the product stays.
LowRankDelta without_zeros(const LowRankDelta& factors);

/// The singular value decomposition of left @ right, without making the product: by a QR of either side and an SVD of
/// the core between the triangles, in f64.
struct Spectrum {
  Tensor left_OK;   ///< orthonormal columns
  Tensor values_K;  ///< singular values, from the largest one down
  Tensor right_KI;  ///< orthonormal rows

  /// Frobenius norm of the product.
  double norm() const;
  /// Returns the norm of what lies beyond the first `rank` values.
  double norm_beyond(int64_t rank) const;
  /// The least rank beyond which lies at most `tolerance` of the norm; at least 1.
  int64_t numeric_rank(double tolerance) const;
  /// The nearest product of that rank, each side with the square roots of the values.
  LowRankDelta balanced(int64_t rank) const;
};
Spectrum spectrum_of(const LowRankDelta& factors);

/// Frobenius norm of the difference of two products, in f64. It is not found as a difference of norms, and so exact
/// also where it is small.
double difference_norm(const LowRankDelta& a, const LowRankDelta& b);

}  // namespace lancet
