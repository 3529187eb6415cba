#include "lancet/runtime/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "lancet/core/error.h"
#include "lancet/runtime/host_memory.h"

namespace lancet {

std::optional<int64_t> free_bytes(at::Device device) {
  if (device.is_cpu()) {
    const std::optional<HostMemory> host = host_memory();
    return host ? std::optional(host->available_bytes) : std::nullopt;
  }
  if (!device.is_cuda()) return std::nullopt;
  const auto [free, total] = at::accelerator::getMemoryInfo(device.index());
  return static_cast<int64_t>(free);
}

std::optional<DeviceMemory> device_memory(at::Device device) {
  if (device.is_cpu()) {
    const std::optional<HostMemory> host = host_memory();
    if (!host) return std::nullopt;
    return DeviceMemory{host->total_bytes, host->total_bytes - host->available_bytes, resident_peak_bytes()};
  }
  if (!device.is_cuda()) return std::nullopt;
  return device_memory(*at::getDeviceAllocator(device.type()), device.index());
}

DeviceMemory device_memory(c10::DeviceAllocator& allocator, int64_t index) {
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto device = static_cast<c10::DeviceIndex>(index);
  const auto [free, total] = allocator.getMemoryInfo(device);
  // of what it has not used yet an allocator counts nothing, and says so by an error
  const auto stats =
      allocator.initialized() ? allocator.getDeviceStats(device) : c10::CachingDeviceAllocator::DeviceStats();
  const int64_t kept = stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current;
  return DeviceMemory{static_cast<int64_t>(total), static_cast<int64_t>(total) - static_cast<int64_t>(free) - kept,
                      stats.allocated_bytes[kAll].peak};
}

void reset_peak(at::Device device) {
  if (device.is_cpu()) reset_resident_peak();
  if (device.is_cuda() && at::getDeviceAllocator(device.type())->initialized())
    at::accelerator::resetPeakStats(device.index());
}

std::vector<at::Device> accelerators() {
  std::vector<at::Device> devices;
  const std::optional<at::DeviceType> type = at::accelerator::getAccelerator();
  for (int index = 0; type && index < at::accelerator::deviceCount(); ++index)
    devices.emplace_back(*type, static_cast<at::DeviceIndex>(index));
  return devices;
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  constexpr int32_t kCudaMemoryAllocation = 2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY
  if (const auto* device = dynamic_cast<const c10::AcceleratorError*>(&error))
    return device->get_error_code() == kCudaMemoryAllocation;
  // Libraries below have errors of their own for it, which only their words tell from others: torch's allocator of the
  // host; CUDA's driver and NCCL ("out of memory"); cuBLAS, cuSOLVER and cuDNN, which have a status for it but give
  // another one where it was their handle that found no room; and oneDNN, which says no more than what it could not
  // make.
  constexpr std::array<std::string_view, 7> kWords{"DefaultCPUAllocator",
                                                   "out of memory",
                                                   "_STATUS_ALLOC_FAILED",
                                                   "`cublasCreate(",
                                                   "`cusolverDnCreate(",
                                                   "could not create a primitive",
                                                   "could not create a memory object"};
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const char* const text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  return text != nullptr && dynamic_cast<const Error*>(&error) == nullptr &&
         std::ranges::any_of(kWords, [&](std::string_view words) {
           return std::string_view(text).find(words) != std::string_view::npos;
         });
}

}  // namespace lancet
