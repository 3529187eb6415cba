#include "lancet/runtime/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <new>
#include <string_view>

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
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto [free, total] = at::accelerator::getMemoryInfo(device.index());
  const auto stats = at::accelerator::getDeviceStats(device.index());
  const int64_t kept = stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current;
  return DeviceMemory{static_cast<int64_t>(total), static_cast<int64_t>(total) - static_cast<int64_t>(free) - kept,
                      stats.allocated_bytes[kAll].peak};
}

void reset_peak(at::Device device) {
  if (device.is_cpu()) reset_resident_peak();
  if (device.is_cuda()) at::accelerator::resetPeakStats(device.index());
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
  // torch's allocator of the host throws its general error
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr && torch_error->what_without_backtrace() != nullptr &&
         std::string_view(torch_error->what_without_backtrace()).find("DefaultCPUAllocator") != std::string_view::npos;
}

}  // namespace lancet
