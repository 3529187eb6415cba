// Launches our kernels for tensors.
#pragma once

#include "lancet/kernels/own_kernels.h"

namespace lancet {

/// What launches kernels for tensors like this one; null: nothing does.
inline KernelLauncher* launcher_of(const Tensor& x) { return launcher_for(x.device(), x.scalar_type()); }

/// The grid of kernels that take a row of `width` numbers at a time.
struct Grid {
  int64_t blocks;
  int64_t threads;
};
/// How many numbers a thread of the grids below takes at least, where there are so many: a load of 128 bits.
int64_t numbers_of_thread(at::ScalarType type);
Grid grid_of_rows(at::ScalarType type, int64_t rows, int64_t width);
/// The grid of kernels that take numbers one by one.
Grid grid_of_numbers(at::ScalarType type, int64_t n);

// Arguments of kernels, of the types that stand there; null for what is not there.
inline const void* to_read(const Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; }
inline void* to_write(const Tensor& x) { return x.defined() ? x.mutable_data_ptr() : nullptr; }
inline long long to_count(int64_t n) { return n; }

/// Launches `name` with these arguments, each of the type that the kernel has there, on x's device, in x's type.
template <typename... Arguments>
void launch_on(const Tensor& x, const std::string& name, Grid grid, Arguments... arguments) {
  if (grid.blocks == 0) return;
  void* pointers[] = {static_cast<void*>(&arguments)...};
  launcher_of(x)->launch(x.device(), {name, x.scalar_type(), grid.blocks, grid.threads, pointers});
}

}  // namespace lancet
