// How one matrix differs between two checkpoints: by how much, in how many directions, and these as factors. What the
// second one lost when it was rounded to its stored type is told from what was changed.
// Sources: the norm of a matrix of independent entries (Bandeira and van Handel, arXiv 1408.6185, theorem 1.1); the
// hard threshold for noise of unknown size (Gavish and Donoho, arXiv 1305.5870, equation 5).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// What decided how many directions a difference has.
enum class RankRule {
  kTolerance,  ///< the others hold at most kRankTolerance of the difference's norm
  kRounding,   ///< the others are not larger than what rounding to the second weight's type makes
  kSpectrum    ///< the others are not larger than noise whose size the middle singular value shows
};
std::string_view rank_rule_name(RankRule rule);  ///< "tolerance", "rounding", "spectrum"

/// Frobenius norms, of a vector or a matrix.
struct ChangeSize {
  double norm = 0;         ///< norm of second less first
  double weight_norm = 0;  ///< norm of the first
  int64_t changed = 0;     ///< numbers that differ

  /// 0 for a first weight of zeros.
  double relative() const { return weight_norm > 0 ? norm / weight_norm : 0; }
};

/// Singular values of a difference [out, in], and how many of them stand out of its noise.
struct ChangeSpectrum {
  int64_t outputs = 0, inputs = 0;
  std::vector<double> values = {};  ///< singular values, from the largest down; those below 1e-10 of it may be left out
  double rest = 0;                  ///< Frobenius norm of what was left out
  int64_t rank = 0;                 ///< 0: nothing stands out of the noise
  RankRule rule = RankRule::kTolerance;
  double noise = 0;           ///< the largest singular value that noise explains; 0: none is expected
  LowRankDelta factors = {};  ///< the first `rank` directions, f64, on the weights' device, roots of the values on
                              ///< both sides

  double norm() const { return norm_beyond(0); }
  double norm_beyond(int64_t directions) const;
  /// Share of the squared norm in the first directions; 1 for a difference of zeros.
  double energy(int64_t directions) const;
  /// Whether the factors take less room than the matrix.
  bool is_low_rank() const;
};

/// Measures the difference of two tensors of equal shapes, on one device. Throws: NumericError for numbers that are not
/// finite.
ChangeSize change_size(const Tensor& before, const Tensor& after);

/// Decomposes the difference of two matrices [out, in] of floating-point numbers, on one device, in f64. `rounded_to`:
/// the type that the second one was rounded to when it was stored; nullopt: it was quantised. The singular values come
/// from the eigenvalues of the shorter side's Gram matrix, twice: again of what the first time leaves, whose small
/// values were lost in the squares. Holds 24 bytes for each number, and 24 for each of the Gram matrix.
/// Throws: NumericError for numbers that are not finite; std::logic_error for other shapes.
ChangeSpectrum change_spectrum(const Tensor& before, const Tensor& after, std::optional<at::ScalarType> rounded_to);

}  // namespace lancet
