// Kernels of our own for accelerators (src/kernels/device): how operations launch them, and whether they are in use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// A kernel, the numbers that it works on, its grid, and pointers to its arguments in order.
struct KernelLaunch {
  std::string name;     ///< "norm"
  at::ScalarType type;  ///< bf16, f16, f32 or f64
  int64_t blocks = 0;
  int64_t threads = 0;  ///< threads of a block: whole warps, at most 1,024
  std::span<void* const> arguments;
};

/// "lancet_norm_bf16": what the kernel is called in the text. Throws: std::logic_error for a type without kernels.
std::string kernel_function(const std::string& name, at::ScalarType type);

class KernelLauncher {
 public:
  virtual ~KernelLauncher() = default;

  /// Whether kernels for this type run there. From any thread.
  virtual bool serves(at::Device device, at::ScalarType type) = 0;

  /// Launches on the device's current stream; the arguments' memory lies on the device. From any thread.
  virtual void launch(at::Device device, const KernelLaunch& launch) = 0;
};

/// Sends operations on tensors of any device that `launcher` serves, those on the host too, through it, until the
/// scope's end.
class LauncherScope {
 public:
  explicit LauncherScope(KernelLauncher& launcher);
  ~LauncherScope();
  LauncherScope(const LauncherScope&) = delete;
  LauncherScope& operator=(const LauncherScope&) = delete;

 private:
  KernelLauncher* before_;
};

/// What launches kernels for numbers of `type` there; null: nothing does, and operations are torch's.
/// LANCET_KERNELS=torch makes it so on every GPU. Throws: ConfigError when that says anything else but own.
KernelLauncher* launcher_for(at::Device device, at::ScalarType type);

/// What the element-wise operations of this process's GPUs have run as so far: "own" kernels, "torch" where those
/// cannot be had, "own and torch" where that differs by device or type. nullopt: no GPU was asked for any.
std::optional<std::string> kernels_in_use();

}  // namespace lancet
