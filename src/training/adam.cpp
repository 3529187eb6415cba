#include "lancet/training/adam.h"

#include <torch/types.h>

#include <cmath>

namespace lancet {

Tensor adam_change(Tensor& first_moment, Tensor& second_moment, const Tensor& gradient, AdamStep step) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
  first_moment.mul_(kBeta1).add_((1 - kBeta1) * gradient);
  second_moment.mul_(kBeta2).add_((1 - kBeta2) * gradient.square());
  const double n = static_cast<double>(step.number);
  const Tensor unbiased = first_moment / (1 - std::pow(kBeta1, n));
  const Tensor scale = (second_moment / (1 - std::pow(kBeta2, n))).sqrt_().add_(kEps);
  return unbiased.mul_(step.lr).div_(scale);
}

}  // namespace lancet
