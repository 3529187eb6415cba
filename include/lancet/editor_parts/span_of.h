// The directions that some vectors span.
#pragma once

#include "lancet/editing/solvers.h"

namespace lancet {

/// Returns orthonormal columns that span those of `columns_FM`: left singular vectors, but for those whose values are
/// rounding's.
Tensor span_of(const Tensor& columns_FM);

}  // namespace lancet
