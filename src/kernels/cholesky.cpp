#include "lancet/kernels/cholesky.h"

#include <torch/types.h>

namespace lancet {

Tensor cholesky_in_place(Tensor matrix) {
  // Column-major, or torch would factor a copy; of a symmetric matrix the transpose is as good.
  Tensor lower = matrix.is_contiguous() ? matrix.t() : std::move(matrix);
  Tensor info = torch::empty({}, lower.options().dtype(at::kInt));
  at::linalg_cholesky_ex_out(lower, info, lower);
  return info.item<int>() == 0 ? lower : Tensor();
}

}  // namespace lancet
