#include "lancet/runtime/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

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

}  // namespace

std::optional<int64_t> free_bytes(at::Device device) {
  if (device.is_cpu()) return free_host_bytes();
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
