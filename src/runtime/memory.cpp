#include "lancet/runtime/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <string>

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

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  // torch's allocator of the host throws its general error
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr && torch_error->what_without_backtrace() != nullptr &&
         std::string_view(torch_error->what_without_backtrace()).find("DefaultCPUAllocator") != std::string_view::npos;
}

}  // namespace lancet
