// How much memory a device has left, and what running out of it looks like.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace c10 {
class DeviceAllocator;
}

namespace lancet {

/// Free for new tensors: of the host what the system could hand out, of an accelerator what its driver reports. nullopt
/// when the device does not say.
std::optional<int64_t> free_bytes(at::Device device);

struct DeviceMemory {
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;  ///< memory that all processes use; what torch's allocator keeps for later counts as free
  int64_t peak_bytes = 0;  ///< most that this process used since reset_peak(): of the host resident, else of tensors
};

/// nullopt when the device does not say.
std::optional<DeviceMemory> device_memory(at::Device device);
/// Asks any allocator, also one that has not been used yet.
DeviceMemory device_memory(c10::DeviceAllocator& allocator, int64_t index);
void reset_peak(at::Device device);

/// Every accelerator that torch can use, by index.
std::vector<at::Device> accelerators();

/// Whether an exception means that a tensor's memory could not be had, on the host or on an accelerator.
bool is_out_of_memory(const std::exception& error);

}  // namespace lancet
