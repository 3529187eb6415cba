// Filters that make the change of any method smaller: RECT, REVIVE and PRUNE.
#pragma once

#include <string>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// RECT (arXiv 2401.04700): keeps the share of the entries of `delta` that change `weight` [O, I] most, relative to the
/// weight's own entries: |delta / (weight + 1e-8)|. The other entries become 0. `share` lies in (0, 1].
DenseDelta keep_largest_relative(const Tensor& weight, const WeightDelta& delta, double share);

/// The directions of a weight with the largest singular values, as orthonormal columns.
struct DominantSubspace {
  Tensor left_OK;
  Tensor right_IK;
};

/// Returns the least number of directions of `weight` [O, I] whose squared singular values sum to more than the share
/// `energy`, in (0, 1), of the total; f64. Throws: NumericError naming `where` if these are all directions of the
/// weight.
DominantSubspace dominant_subspace(const Tensor& weight, double energy, const std::string& where);

/// REVIVE (arXiv 2601.11042): (I - U U^T) delta (I - V V^T), as factors if the change has factors.
WeightDelta keep_dominant(const DominantSubspace& kept, const WeightDelta& delta);

/// PRUNE (arXiv 2405.16821): replaces each singular value s of `change` that exceeds m, the largest one of `base`, by
/// log(s) - log(m) + m, with logarithms to base `log_base` > 1. Both matrices are [O, I]. Returns the whole change. The
/// reference code differs: it adds the result to the weight that has already been edited.
Tensor restrain_spectrum(const Tensor& base, const Tensor& change, double log_base);

}  // namespace lancet
