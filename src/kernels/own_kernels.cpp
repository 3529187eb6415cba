// Chooses the launcher for a tensor: that of a test, or the one for the GPUs of this process.
#include "lancet/kernels/own_kernels.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>

#include "device_launch.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/gpu_kernels.h"

namespace lancet {
namespace {

std::atomic<KernelLauncher*> scoped_launcher{nullptr};
std::atomic<GpuKernels*> made_kernels{nullptr};  ///< null: no kernel for a GPU was requested yet
std::atomic<bool> torch_was_chosen{false};

void* current_stream(at::Device device) {
  const auto* guard = c10::impl::getDeviceGuardImpl(device.type());
  return guard->getStreamNativeHandle(guard->getStream(device));
}

/// Reads LANCET_KERNELS: "own" (also if it is not set) or "torch".
bool wants_own_kernels() {
  static const bool wants = [] {
    const char* text = std::getenv("LANCET_KERNELS");
    const std::string choice = text == nullptr ? "own" : text;
    if (choice != "own" && choice != "torch")
      throw ConfigError(cat("LANCET_KERNELS: expected own or torch, found \"", choice, "\""));
    return choice == "own";
  }();
  return wants;
}

/// Never destroyed: the driver may be unloaded before the destructors of this process run.
GpuKernels& process_kernels() {
  static GpuKernels* const kernels = [] {
    made_kernels = new GpuKernels({open_compiler(), open_library("libcuda.so.1"), current_stream});
    return made_kernels.load();
  }();
  return *kernels;
}

}  // namespace

LauncherScope::LauncherScope(KernelLauncher& launcher) : before_(scoped_launcher.exchange(&launcher)) {}

LauncherScope::~LauncherScope() { scoped_launcher = before_; }

KernelLauncher* launcher_for(at::Device device, at::ScalarType type) {
  if (KernelLauncher* scoped = scoped_launcher; scoped != nullptr)
    return scoped->serves(device, type) ? scoped : nullptr;
  if (!device.is_cuda()) return nullptr;
  if (!wants_own_kernels()) {
    torch_was_chosen = true;
    return nullptr;
  }
  return process_kernels().serves(device, type) ? &process_kernels() : nullptr;
}

std::optional<std::string> kernels_in_use() {
  if (torch_was_chosen) return "torch";
  const GpuKernels* made = made_kernels;
  return made == nullptr ? std::nullopt : made->in_use();
}

int64_t numbers_of_thread(at::ScalarType type) {
  constexpr int64_t kLeast = 4, kLoadBytes = 16;
  return std::max<int64_t>(kLeast, kLoadBytes / static_cast<int64_t>(c10::elementSize(type)));
}

Grid grid_of_rows(at::ScalarType type, int64_t rows, int64_t width) {
  constexpr int64_t kWarp = 32, kMostThreads = 1024;
  const int64_t of_warp = kWarp * numbers_of_thread(type), warps = (width + of_warp - 1) / of_warp;
  return {std::min<int64_t>(rows, std::numeric_limits<int32_t>::max()),
          std::clamp<int64_t>(warps * kWarp, kWarp, kMostThreads)};
}

Grid grid_of_numbers(at::ScalarType type, int64_t n) {
  constexpr int64_t kThreads = 256, kMostBlocks = int64_t{1} << 20;
  const int64_t of_block = kThreads * numbers_of_thread(type);
  return {std::min(kMostBlocks, (n + of_block - 1) / of_block), kThreads};
}

}  // namespace lancet
