// Numbers that are measured where tensors lie, and read together: one wait for the device.
#pragma once

#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

class Measured {
 public:
  /// The largest magnitude; not finite where the tensor has a number that is not. A place for value().
  size_t magnitude(const Tensor& values);
  size_t least(const Tensor& values);
  size_t most(const Tensor& values);
  /// 1 where any number of a matrix of E4M3 is NaN (it has no infinity), else 0.
  size_t not_a_number(const Tensor& codes);
  /// A tensor of one number.
  size_t one(const Tensor& value);

  /// Waits. Once, before value().
  void read();
  double value(size_t place) const { return values_[place]; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<double> values_;
};

}  // namespace lancet
