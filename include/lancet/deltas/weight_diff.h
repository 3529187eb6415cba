// Measures how one matrix differs between two checkpoints: the size of the difference, its number of directions, and
// these directions as factors. Separates the real change from the rounding of the second matrix to its stored type.
// Sources: the norm of a matrix of independent entries (Bandeira and van Handel, arXiv 1408.6185, theorem 1.1); the
// hard threshold for noise of unknown size (Gavish and Donoho, arXiv 1305.5870, equation 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// The rule that decided how many directions a difference has.
enum class RankRule {
  kTolerance,  ///< the other directions hold at most kRankTolerance of the difference's norm
  kRounding,   ///< the other directions are not larger than rounding to the second weight's type makes them
  kSpectrum    ///< the other directions are not larger than noise, whose size follows from the middle singular value
};
std::string_view rank_rule_name(RankRule rule);  ///< "tolerance", "rounding", "spectrum"

/// Frobenius norms, of a vector or a matrix.
struct ChangeSize {
  double norm = 0;         ///< norm of the second minus the first
  double weight_norm = 0;  ///< norm of the first
  int64_t changed = 0;     ///< how many numbers differ

  /// Returns 0 if the first weight is all zeros.
  double relative() const { return weight_norm > 0 ? norm / weight_norm : 0; }
};

/// The singular values of a difference [out, in], and how many of them exceed its noise.
struct ChangeSpectrum {
  int64_t outputs = 0, inputs = 0;
  /// Singular values in descending order; values below 1e-10 of the largest may be left out.
  std::vector<double> values = {};
  double rest = 0;   ///< Frobenius norm of the values that were left out
  int64_t rank = 0;  ///< 0: nothing exceeds the noise
  RankRule rule = RankRule::kTolerance;
  double noise = 0;  ///< the largest singular value that noise can explain; 0: no noise is expected
  /// The first `rank` directions, f64, on the weights' device, with the roots of the singular values on both sides.
  LowRankDelta factors = {};

  double norm() const { return norm_beyond(0); }
  double norm_beyond(int64_t directions) const;
  /// Returns the share of the squared norm in the first directions; 1 for a difference of zeros.
  double energy(int64_t directions) const;
  /// Returns whether the factors take less space than the matrix.
  bool is_low_rank() const;
};

/// Measures the difference of two tensors of equal shapes, on one device. Throws: NumericError for numbers that are not
/// finite.
ChangeSize change_size(const Tensor& before, const Tensor& after);

/// Decomposes the difference of two matrices [out, in] of floating-point numbers, on one device, in f64. `rounded_to`:
/// the type to which the second matrix was rounded when it was stored; nullopt: it was quantised. The singular values
/// come from the eigenvalues of the Gram matrix of the shorter side. This is done twice: squaring loses the small
/// values, so the second decomposition takes what the first one left. Uses 24 bytes of memory for each number of the
/// matrix and 24 for each of the Gram matrix. Throws: NumericError for numbers that are not finite; std::logic_error
/// for other shapes.
ChangeSpectrum change_spectrum(const Tensor& before, const Tensor& after, std::optional<at::ScalarType> rounded_to);

}  // namespace lancet
