#include "lancet/editor_parts/span_of.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>

namespace lancet {

Tensor span_of(const Tensor& columns_FM) {
  const auto [u_FR, s_R, v_RM] = at::linalg_svd(columns_FM, /*full_matrices=*/false);
  const double rounding = static_cast<double>(std::max(columns_FM.size(0), columns_FM.size(1))) *
                          std::numeric_limits<double>::epsilon() * s_R[0].item<double>();
  return u_FR.narrow(1, 0, (s_R > std::max(rounding, 1e-10)).sum().item<int64_t>());
}

}  // namespace lancet
