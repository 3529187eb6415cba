// The part of key space in which text has next to no keys: a change that acts there alone leaves what is known alone.
// Source: AlphaEdit (arXiv 2410.02355, section 3.2): eigenvectors of C whose eigenvalues are below an absolute
// threshold. Differs from the reference: the projector is not formed; the smaller of the two bases is kept; the
// threshold may be chosen so that a share of the dimensions lies below it.
#pragma once

#include <compare>
#include <limits>
#include <optional>
#include <string>

#include "lancet/runtime/tensor.h"
#include "lancet/spec/layered_spec.h"

namespace lancet {

/// Which of C's eigenvectors make the null space.
struct NullSpaceRule {
  std::optional<double> below = {};  ///< those of eigenvalues below it; nullopt: of the least ones, as many as
  double share = LayeredSpec::kNullSpaceBelow.share;  ///< this share of the dimensions

  auto operator<=>(const NullSpaceRule&) const = default;
};

struct NullSpace {
  enum class Basis {
    kNullSpace,   ///< columns span the null space
    kComplement,  ///< columns span the rest
    kProjection   ///< none: P itself, as another tool computed it, or of experts
  };

  Tensor basis_FQ;  ///< orthonormal columns, but for kProjection; of experts P's blocks [E, W, W]
  Basis basis = Basis::kNullSpace;
  int64_t rank = 0;  ///< dimensions of the null space
  /// The threshold on C's eigenvalues; NaN: not known (another tool's).
  double below = std::numeric_limits<double>::quiet_NaN();

  /// P x, of columns [F, N].
  Tensor project(const Tensor& columns_FN) const;

  /// P [F, F], or of experts its blocks [E, W, W].
  Tensor projector() const;
};

/// Which of the two bases a null space is kept by.
enum class KeptBasis { kSmaller, kNullSpace };

/// Makes a null space of eigenvectors of C [F, F] f64, or of experts its blocks [E, W, W]. Throws: NumericError naming
/// `where` when none of them is chosen, or all are, with the spectrum's range.
NullSpace make_null_space(const Tensor& covariance_FF, const NullSpaceRule& rule, const std::string& where,
                          KeptBasis kept = KeptBasis::kSmaller);

}  // namespace lancet
