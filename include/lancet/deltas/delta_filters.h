// What makes any method's change milder: RECT, REVIVE and PRUNE.
#pragma once

#include <string>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// RECT (arXiv 2401.04700): of the entries of `delta` the share that changes `weight` [O, I] most, relative to its own
/// entries, |delta / (weight + 1e-8)|; the others are 0. `share` in (0, 1].
DenseDelta keep_largest_relative(const Tensor& weight, const WeightDelta& delta, double share);

/// Directions of a weight in which its singular values are largest, orthonormal columns.
struct DominantSubspace {
  Tensor left_OK;
  Tensor right_IK;
};

/// The least number of directions whose squared singular values sum to more than `energy`, in (0, 1), of all. Of
/// `weight` [O, I], f64. Throws: NumericError naming `where` when these are all that the weight has.
DominantSubspace dominant_subspace(const Tensor& weight, double energy, const std::string& where);

/// REVIVE (arXiv 2601.11042): (I - U U^T) delta (I - V V^T), as factors where the change has them.
WeightDelta keep_dominant(const DominantSubspace& kept, const WeightDelta& delta);

/// PRUNE (arXiv 2405.16821): singular values s of `change` above the largest one, m, of `base` become
/// log(s) - log(m) + m, logarithms to base `log_base` > 1. Both [O, I]. Differs from the reference code, which adds the
/// result to the weight that has been edited already: this is the whole change.
Tensor restrain_spectrum(const Tensor& base, const Tensor& change, double log_base);

}  // namespace lancet
