// The part of key space in which text has next to no keys: a change that acts there alone leaves what is known alone.
// Source: AlphaEdit (arXiv 2410.02355, section 3.2): eigenvectors of C whose eigenvalues are below an absolute
// threshold. Differs from the reference: the projector is not formed; the smaller of the two bases is kept.
#pragma once

#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

struct NullSpace {
  enum class Basis {
    kNullSpace,   ///< of the null space
    kComplement,  ///< of the rest
    kProjection   ///< none: P itself, as another tool computed it
  };

  Tensor basis_FQ;  ///< orthonormal columns, but for kProjection
  Basis basis = Basis::kNullSpace;
  int64_t rank = 0;  ///< dimensions of the null space

  /// P x, of columns [F, N].
  Tensor project(const Tensor& columns_FN) const;
};

/// Of the eigenvectors of C [F, F] f64 with eigenvalues below `threshold`.
/// Throws: NumericError naming `where` when no eigenvalue is below it, or all are, with the spectrum's range.
NullSpace make_null_space(const Tensor& covariance_FF, double threshold, const std::string& where);

}  // namespace lancet
