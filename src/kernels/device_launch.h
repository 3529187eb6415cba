// Launches our own kernels for tensors.
#pragma once

#include "lancet/kernels/own_kernels.h"

namespace lancet {

/// Returns the launcher for tensors of this device and type; null: there is none.
inline KernelLauncher* launcher_of(const Tensor& x) { return launcher_for(x.device(), x.scalar_type()); }

/// The grid of kernels that process one row of `width` numbers at a time.
struct Grid {
  int64_t blocks;
  int64_t threads;
};
/// Least number of elements that a thread of the grids below processes, if there are enough: as many as one load of 128
/// bits reads.
int64_t numbers_of_thread(at::ScalarType type);
Grid grid_of_rows(at::ScalarType type, int64_t rows, int64_t width);
/// The grid of kernels that process numbers independently of each other.
Grid grid_of_numbers(at::ScalarType type, int64_t n);

// Arguments in the types of the kernels' parameters; null for undefined tensors.
inline const void* to_read(const Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; }
inline void* to_write(const Tensor& x) { return x.defined() ? x.mutable_data_ptr() : nullptr; }
inline long long to_count(int64_t n) { return n; }

/// Launches the kernel `name` for x's type on x's device. Each argument must have the type of the kernel's parameter.
template <typename... Arguments>
void launch_on(const Tensor& x, const std::string& name, Grid grid, Arguments... arguments) {
  if (grid.blocks == 0) return;
  void* pointers[] = {static_cast<void*>(&arguments)...};
  launcher_of(x)->launch(x.device(), {name, x.scalar_type(), grid.blocks, grid.threads, pointers});
}

}  // namespace lancet
