#include "lancet/kernels/cholesky.h"

#include <torch/types.h>

namespace lancet {

Tensor cholesky_in_place(Tensor matrix) {
  // Column-major, or torch would factor a copy; of a symmetric matrix the transpose is as good.
  Tensor lower = matrix.is_contiguous() ? matrix.mT() : std::move(matrix);
  Tensor info =
      torch::empty(lower.sizes().slice(0, static_cast<size_t>(lower.dim() - 2)), lower.options().dtype(at::kInt));
  at::linalg_cholesky_ex_out(lower, info, lower);
  return info.any().item<bool>() ? Tensor() : lower;
}

}  // namespace lancet
