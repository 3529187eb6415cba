// lancet's own kernels for accelerators (src/kernels/device): how operations launch them, and whether they are in use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// One kernel launch: the kernel's name, its number type, its grid, and pointers to its arguments in order.
struct KernelLaunch {
  std::string name;     ///< "norm"
  at::ScalarType type;  ///< bf16, f16, f32 or f64
  int64_t blocks = 0;
  int64_t threads = 0;  ///< threads per block: a multiple of the warp size, at most 1,024
  std::span<void* const> arguments;
};

/// Returns the kernel's name in the source text, such as "lancet_norm_bf16". Throws: std::logic_error for a type
/// without kernels.
std::string kernel_function(const std::string& name, at::ScalarType type);

class KernelLauncher {
 public:
  virtual ~KernelLauncher() = default;

  /// Whether kernels for this type run on the device. Thread-safe.
  virtual bool serves(at::Device device, at::ScalarType type) = 0;

  /// Launches on the device's current stream. The arguments' memory is on the device. Thread-safe.
  virtual void launch(at::Device device, const KernelLaunch& launch) = 0;
};

/// Sends the operations on tensors through `launcher` until the end of the scope, for every device that it serves (the
/// host too).
class LauncherScope {
 public:
  explicit LauncherScope(KernelLauncher& launcher);
  ~LauncherScope();
  LauncherScope(const LauncherScope&) = delete;
  LauncherScope& operator=(const LauncherScope&) = delete;

 private:
  KernelLauncher* before_;
};

/// Returns the launcher of kernels for `type` on the device; null: there is none, and torch computes the operations.
/// LANCET_KERNELS=torch has this effect on every GPU. Throws: ConfigError when LANCET_KERNELS is neither torch nor own.
KernelLauncher* launcher_for(at::Device device, at::ScalarType type);

/// Returns what has run the element-wise operations on this process's GPUs so far: "own" for own kernels, "torch" where
/// those are not available, "own and torch" where devices or types differ. nullopt: no GPU has run any.
std::optional<std::string> kernels_in_use();

}  // namespace lancet
