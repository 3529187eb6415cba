// Our kernels on NVIDIA's GPUs: compiled from their text by NVRTC, which comes with torch, when a device and a type are
// first used, and kept for the process.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "lancet/kernels/own_kernels.h"
#include "lancet/runtime/gpu_driver.h"

namespace lancet {

/// What runs text on a GPU.
struct GpuLibraries {
  SymbolSource compiler;                    ///< NVRTC's functions; empty: there is none
  SymbolSource driver;                      ///< libcuda's
  std::function<void*(at::Device)> stream;  ///< torch's current one, as libcuda knows it
};

/// libnvrtc of the system, or beside the torch that this program runs with; empty: there is none.
SymbolSource open_compiler();

/// The kernels for numbers of `type` as a program for GPUs of this capability (90: sm_90). Throws: std::runtime_error
/// with the compiler's words.
std::string compile_kernels(const SymbolSource& compiler, int64_t capability, at::ScalarType type);

class GpuKernels : public KernelLauncher {
 public:
  explicit GpuKernels(GpuLibraries libraries);

  /// Compiles and loads the program when it is first asked for. Where that fails, a warning says why, once.
  bool serves(at::Device device, at::ScalarType type) override;

  /// Throws: PlacementError with the error's name; c10::OutOfMemoryError.
  void launch(at::Device device, const KernelLaunch& launch) override;

  /// kernels_in_use() of these.
  std::optional<std::string> in_use() const;

 private:
  using Key = std::pair<int64_t, at::ScalarType>;
  struct Program {
    std::string problem;                     ///< why there are none; empty: they work
    std::map<std::string, void*> functions;  ///< kernels by name
  };

  const Program& program(at::Device device, at::ScalarType type);
  Program load(at::Device device, at::ScalarType type) const;
  /// Gives the thread a context: one that has run nothing on a GPU yet has none.
  void enter_context(at::Device device) const;

  GpuLibraries libraries_;
  void* current_context_ = nullptr;  ///< the driver's function, which every launch needs
  void* launch_kernel_ = nullptr;    ///< likewise
  mutable std::mutex mutex_;         ///< guards what follows
  std::map<Key, Program> programs_;
  bool has_warned_ = false;
};

}  // namespace lancet
