// Calls the loops of host_loops.h for tensors: selects the type, and spreads rows over threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "host_loops.h"
#include "lancet/runtime/devices.h"

namespace lancet {

inline bool has_host_loops(at::Device device, at::ScalarType type) {
  return device == Placement::host() && (type == at::kFloat || type == at::kDouble || type == at::kBFloat16);
}
inline bool has_host_loops(const at::Tensor& x) { return has_host_loops(x.device(), x.scalar_type()); }

/// Calls loop(T{}) with the element type of a tensor that has host loops.
template <typename Loop>
void for_host_type(const at::Tensor& x, const Loop& loop) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return loop(float{});
    case at::kDouble:
      return loop(double{});
    default:
      return loop(c10::BFloat16{});
  }
}

/// Calls run(RowRange) for parts that cover all rows; one row costs about `row_cost` operations.
void parallel_rows(int64_t rows, int64_t row_cost, const std::function<void(RowRange)>& run);

}  // namespace lancet
