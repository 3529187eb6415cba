#include "weighted_error.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

namespace lancet {

Tensor with_keys(Tensor moment_II, double weight, const Tensor& keys_IN) {
  return moment_II.mul_(weight).addmm_(keys_IN, keys_IN.t());
}

Tensor weighted_square(const Tensor& matrix_OI, const Tensor& importance) {
  if (importance.dim() == 2) return (matrix_OI.mm(importance) * matrix_OI).sum();
  const Tensor by_block = matrix_OI.unflatten(1, {importance.size(0), -1}).transpose(0, 1);
  return (by_block.bmm(importance) * by_block).sum();
}

double root_of_share(const Tensor& part, const Tensor& whole) {
  const double all = whole.item<double>();
  return all > 0 ? std::sqrt(std::max(0.0, part.item<double>()) / all) : 0;
}

}  // namespace lancet
