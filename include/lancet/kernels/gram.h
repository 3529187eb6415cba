// Second moments: C += X^T X, the f32 products of a chunk folded into an f64 sum.
#pragma once

#include <cstdint>

#include "lancet/runtime/tensor.h"

namespace lancet {

class GramAccumulator {
 public:
  /// The sum lies on `device`.
  GramAccumulator(int64_t size, at::Device device);

  /// rows [N, F] on the accumulator's device, any floating type; products in f32 (f64 rows: in f64).
  void add(const Tensor& rows_NF);

  /// Sum of k k^T over all rows, [F, F] f64.
  const Tensor& sum() const { return sum_FF_; }
  int64_t rows() const { return rows_; }

 private:
  Tensor sum_FF_;
  int64_t rows_ = 0;
};

}  // namespace lancet
