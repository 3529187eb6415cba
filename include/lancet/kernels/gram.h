// Second moments: C += X^T X, the f32 products of a chunk of rows folded into an f64 sum. A Gram matrix is symmetric:
// only the panels on and below its diagonal are computed (a SYRK made of matrix products, since the torch wheel
// shows no syrk), and mirrored once at the end.
#pragma once

#include <cstdint>

#include "lancet/runtime/communicator.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

class GramAccumulator {
 public:
  /// The sum lies on `device`.
  GramAccumulator(int64_t size, at::Device device);

  /// rows [N, F] on the accumulator's device, any floating type; products in f32 (f64 rows: in f64).
  /// counts [N], any type, on the host: row i stands for so many equal rows; undefined: for one.
  /// Throws: PlacementError for rows elsewhere.
  void add(const Tensor& rows_NF, const Tensor& host_counts_N = {});

  /// The sum so far, [F, F] f64: whole where it is computed, undefined numbers elsewhere. For saving only.
  const Tensor& panels() const { return sum_FF_; }
  int64_t rows() const { return rows_; }
  /// Goes on from what `panels` and `rows` said earlier.
  /// Throws: std::logic_error for another shape or type.
  void restore(const Tensor& panels_FF, int64_t rows);

  /// Collective: the sum over all ranks' rows, on every rank.
  void sum_over(Communicator& communicator);

  /// Mean of x x^T over all rows, [F, F] f64, exactly symmetric, in the accumulator's own memory: it is used up.
  Tensor take_mean() &&;

 private:
  Tensor sum_FF_;
  int64_t rows_ = 0;
};

}  // namespace lancet
