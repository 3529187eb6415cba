// Our kernels for GPUs, run on the host from the very text that NVRTC compiles: one block after another, whose threads
// take turns and wait for each other where a GPU's do. Turns in both orders show what a missing wait would break.
#pragma once

#include <cstdint>

#include "lancet/kernels/own_kernels.h"

namespace lancet::testing {

enum class ThreadOrder { kAscending, kDescending };

class EmulatedKernels : public KernelLauncher {
 public:
  explicit EmulatedKernels(ThreadOrder order) : order_(order) {}

  /// Tensors on the host and on fake devices, whose memory is the host's.
  bool serves(at::Device device, at::ScalarType type) override;
  /// Throws: std::logic_error for an unknown kernel, a block that no GPU takes, and threads that wait for others in
  /// vain.
  void launch(at::Device device, const KernelLaunch& launch) override;

  int64_t launches() const { return launches_; }

 private:
  ThreadOrder order_;
  int64_t launches_ = 0;
};

/// The kernels' own conversions, bits to bits.
uint16_t kernels_narrow_f16(float x);
float kernels_widen_f16(uint16_t bits);
uint16_t kernels_narrow_bf16(float x);
float kernels_widen_bf16(uint16_t bits);

}  // namespace lancet::testing
