// Computes an orthonormal basis of the span of some vectors.
#pragma once

#include "lancet/editing/solvers.h"

namespace lancet {

/// Returns orthonormal columns that span those of `columns_FM`: the left singular vectors, without those whose singular
/// values are rounding noise.
Tensor span_of(const Tensor& columns_FM);

}  // namespace lancet
