// The algebra of adapters: the sum of changes as one product, and the nearest product of lower rank.
#pragma once

#include <span>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// Returns the sum of changes of one matrix [out, in] as one product, in f64 on the host. If the changes are low-rank,
/// and together have fewer directions than the matrix has rows or columns, the result has their factors side by side;
/// else it is the sum and an identity matrix.
LowRankDelta summed_factors(std::span<const WeightDelta> deltas, int64_t n_outputs, int64_t n_inputs);

/// Drops the directions that are zero on one side. The product stays the same.
LowRankDelta without_zeros(const LowRankDelta& factors);

/// The singular value decomposition of left @ right, computed without the product: a QR of both sides, and an SVD of
/// the core between the triangles, in f64.
struct Spectrum {
  Tensor left_OK;   ///< orthonormal columns
  Tensor values_K;  ///< singular values, the largest first
  Tensor right_KI;  ///< orthonormal rows

  /// Returns the Frobenius norm of the product.
  double norm() const;
  /// Returns the norm of the part beyond the first `rank` values.
  double norm_beyond(int64_t rank) const;
  /// Returns the smallest rank beyond which there is at most `tolerance` of the norm; at least 1.
  int64_t numeric_rank(double tolerance) const;
  /// Returns the nearest product of that rank. Each side has the square roots of the values.
  LowRankDelta balanced(int64_t rank) const;
};
Spectrum spectrum_of(const LowRankDelta& factors);

/// Returns the Frobenius norm of the difference of two products, in f64. It is not computed as a difference of norms,
/// so it is exact even if it is small.
double difference_norm(const LowRankDelta& a, const LowRankDelta& b);

}  // namespace lancet
