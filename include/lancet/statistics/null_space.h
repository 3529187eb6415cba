// The part of key space in which text has almost no keys. A change that acts only there leaves existing knowledge
// unchanged. Source: AlphaEdit (arXiv 2410.02355, section 3.2): the eigenvectors of C whose eigenvalues are below an
// absolute threshold. Differs from the reference: the projector is not formed; the smaller of the two bases is kept;
// the threshold may be chosen such that a given share of the dimensions is below it.
#pragma once

#include <compare>
#include <limits>
#include <optional>
#include <string>

#include "lancet/runtime/tensor.h"
#include "lancet/spec/layered_spec.h"

namespace lancet {

/// Which eigenvectors of C span the null space.
struct NullSpaceRule {
  std::optional<double> below = {};  ///< eigenvectors whose eigenvalues are below this; nullopt: those with the
                                     ///< smallest eigenvalues, `share` of all dimensions
  double share = LayeredSpec::kNullSpaceBelow.share;  ///< share of the dimensions, used if `below` is nullopt

  auto operator<=>(const NullSpaceRule&) const = default;
};

struct NullSpace {
  enum class Basis {
    kNullSpace,   ///< columns span the null space
    kComplement,  ///< columns span the rest
    kProjection   ///< no basis: P itself, as another tool computed it, or for experts
  };

  Tensor basis_FQ;  ///< orthonormal columns, except for kProjection; with experts the blocks of P [E, W, W]
  Basis basis = Basis::kNullSpace;
  int64_t rank = 0;  ///< dimensions of the null space
  /// The threshold on the eigenvalues of C; NaN: unknown (from another tool).
  double below = std::numeric_limits<double>::quiet_NaN();

  /// Returns P x for columns [F, N].
  Tensor project(const Tensor& columns_FN) const;

  /// Returns P [F, F], or with experts its blocks [E, W, W].
  Tensor projector() const;
};

/// Which of the two bases is kept for a null space.
enum class KeptBasis { kSmaller, kNullSpace };

/// Makes a null space from the eigenvectors of C [F, F] f64, or with experts of its blocks [E, W, W]. Throws:
/// NumericError that names `where`, with the spectrum's range, when no eigenvector is chosen, or all are.
NullSpace make_null_space(const Tensor& covariance_FF, const NullSpaceRule& rule, const std::string& where,
                          KeptBasis kept = KeptBasis::kSmaller);

}  // namespace lancet
