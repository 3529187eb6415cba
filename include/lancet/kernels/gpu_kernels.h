// lancet's own kernels on NVIDIA GPUs. NVRTC, which comes with torch, compiles them from source text when a device and
// a type are first used. The process keeps the compiled kernels.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "lancet/kernels/own_kernels.h"
#include "lancet/runtime/gpu_driver.h"

namespace lancet {

/// The libraries that compile kernel source text and run it on a GPU.
struct GpuLibraries {
  SymbolSource compiler;                    ///< NVRTC's functions; empty: NVRTC was not found
  SymbolSource driver;                      ///< libcuda's
  std::function<void*(at::Device)> stream;  ///< returns torch's current stream as a libcuda handle
};

/// Opens libnvrtc: the system's, or the one beside the torch library of this program. Returns an empty source if there
/// is none.
SymbolSource open_compiler();

/// Compiles the kernels for `type` to a program for GPUs of this capability (90: sm_90). Throws: std::runtime_error
/// with the compiler's message.
std::string compile_kernels(const SymbolSource& compiler, int64_t capability, at::ScalarType type);

class GpuKernels : public KernelLauncher {
 public:
  explicit GpuKernels(GpuLibraries libraries);

  /// Compiles and loads the program at the first call. If that fails, one warning says why.
  bool serves(at::Device device, at::ScalarType type) override;

  /// Launches the kernel. Throws: PlacementError with the name of the driver's error; c10::OutOfMemoryError.
  void launch(at::Device device, const KernelLaunch& launch) override;

  /// Returns the value of kernels_in_use() for these kernels.
  std::optional<std::string> in_use() const;

 private:
  using Key = std::pair<int64_t, at::ScalarType>;
  struct Program {
    std::string problem;                     ///< why there are no kernels; empty: they work
    std::map<std::string, void*> functions;  ///< kernels by name
  };

  const Program& program(at::Device device, at::ScalarType type);
  Program load(at::Device device, at::ScalarType type) const;
  /// Gives the thread a CUDA context. A thread that has not yet run anything on a GPU has none.
  void enter_context(at::Device device) const;

  GpuLibraries libraries_;
  void* current_context_ = nullptr;  ///< the driver's function, which every launch needs
  void* launch_kernel_ = nullptr;    ///< the driver's launch function
  mutable std::mutex mutex_;         ///< guards the members below
  std::map<Key, Program> programs_;
  bool has_warned_ = false;
};

}  // namespace lancet
