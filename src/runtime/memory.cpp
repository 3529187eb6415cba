#include "lancet/runtime/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <string>

#include "lancet/runtime/host_memory.h"

namespace lancet {
namespace {

std::optional<int64_t> free_host_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kKey = "MemAvailable:";
    if (line.starts_with(kKey)) return std::stoll(line.substr(kKey.size())) * 1024;
  }
  return std::nullopt;
}

/// What the container may still take, of memory that is not merely cached files; nullopt: no limit.
std::optional<int64_t> free_container_bytes() {
  std::ifstream limit_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
  int64_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return std::nullopt;  // "max" is no number
  std::ifstream statistics("/sys/fs/cgroup/memory.stat");
  for (std::string key, value; statistics >> key >> value;)
    if (key == "inactive_file") used -= std::stoll(value);
  return std::max<int64_t>(0, limit - used);
}

}  // namespace

std::optional<int64_t> free_bytes(at::Device device) {
  if (device.is_cpu()) {
    const std::optional<int64_t> host = free_host_bytes(), container = free_container_bytes();
    return host && container ? std::min(*host, *container) : host ? host : container;
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
