// Measures how fast devices work.
#pragma once

#include <ATen/DeviceAccelerator.h>

#include <chrono>
#include <cstdint>
#include <functional>

#include "lancet/runtime/devices.h"

namespace lancet {

/// Waits until all work on the device is done.
inline void wait_for(at::Device device) {
  if (device != Placement::host()) at::accelerator::synchronizeDevice(device.index());
}

/// Returns how many times per second `work` runs. The first run is not counted, because it also sets things up.
inline double rate(const std::function<void()>& work, double seconds) {
  work();
  const auto begin = std::chrono::steady_clock::now();
  double elapsed = 0;
  int64_t runs = 0;
  do {
    work();
    ++runs;
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  } while (elapsed < seconds);
  return static_cast<double>(runs) / elapsed;
}

}  // namespace lancet
