#include "lancet/runtime/memory.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>
#include <algorithm>
#include <array>
#include <condition_variable>
#include <fstream>
#include <new>
#include <string>
#include <string_view>

#include "device_text.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

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
  // for a device without any use so far, an allocator throws an error instead of counting 0
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
  // Other libraries have their own errors for exhausted memory, which only their text tells apart: torch's host
  // allocator; CUDA's driver and NCCL ("out of memory"); cuBLAS, cuSOLVER and cuDNN, which have a status for it but
  // return another one if their handle found no memory; and oneDNN, which only says what it could not create.
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

// Control groups. Version 2 has one tree under /sys/fs/cgroup; version 1 has one for memory in its own folder. Every
// folder from the process's group up to the root can set a limit. In a container, the process's path may name a folder
// of the host that does not exist; then the root is used.

namespace {

namespace fs = std::filesystem;

/// Returns the bytes of "Key:   123 kB" in a file of /proc.
std::optional<int64_t> kilobytes_of(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  return std::nullopt;
}

/// Returns nullopt if there is no such file, or if it says "max".
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// The names of the same things in the two versions of control groups.
struct GroupFiles {
  const char* folder;
  const char* mark;  ///< text between the colons of the group's line in /proc/self/cgroup
  const char* limit;
  const char* usage;
  const char* cache_keys[2];
};

constexpr GroupFiles kVersions[] = {
    {"sys/fs/cgroup", "::", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"sys/fs/cgroup/memory",
     ":memory:",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

/// Returns "/user.slice/job" from the line "4:memory:/user.slice/job".
std::string group_path(const fs::path& root, const GroupFiles& version) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (const size_t at = line.find(version.mark); at != std::string::npos)
      return line.substr(at + std::string_view(version.mark).size());
  return "/";
}

int64_t cached_bytes(const fs::path& group, const GroupFiles& version) {
  std::ifstream file(group / "memory.stat");
  int64_t cached = 0;
  std::string key;
  for (int64_t bytes = 0; file >> key >> bytes;)
    if (key == version.cache_keys[0] || key == version.cache_keys[1]) cached += bytes;
  return cached;
}

/// Lowers `memory` to the limits of one group.
void apply_limit(const fs::path& group, const GroupFiles& version, HostMemory& memory) {
  const std::optional<int64_t> limit = number_in(group / version.limit), usage = number_in(group / version.usage);
  if (!limit || *limit <= 0) return;
  if (*limit < memory.total_bytes) {
    memory.total_bytes = *limit;
    memory.limit_bytes = *limit;
  }
  if (usage)
    memory.available_bytes =
        std::min(memory.available_bytes, std::max<int64_t>(0, *limit - *usage + cached_bytes(group, version)));
}

}  // namespace

std::optional<HostMemory> host_memory(const fs::path& root) {
  const std::optional<int64_t> total = kilobytes_of(root / "proc/meminfo", "MemTotal:");
  const std::optional<int64_t> available = kilobytes_of(root / "proc/meminfo", "MemAvailable:");
  if (!total || !available) return std::nullopt;
  HostMemory memory{*total, *available, {}};
  for (const GroupFiles& version : kVersions) {
    const fs::path top = root / version.folder;
    fs::path group = top / fs::path(group_path(root, version)).relative_path();
    for (; group != top && group.has_relative_path(); group = group.parent_path()) apply_limit(group, version, memory);
    apply_limit(top, version, memory);
  }
  return memory;
}

int64_t resident_peak_bytes() { return kilobytes_of("/proc/self/status", "VmHWM:").value_or(0); }

void reset_resident_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

namespace {

constexpr double kWarningShare = 0.9;
constexpr std::chrono::seconds kLook{1};

/// All existing meters. A device has only one peak, so before the peak is reset, all meters read it.
struct Meters {
  std::mutex mutex;
  std::vector<PeakMeter*> all;
  std::vector<at::Device> devices{Placement::host()};
};

Meters& meters() {
  static Meters living;
  return living;
}

void warn(const MemoryInUse& use) {
  const auto percent =
      static_cast<int>(100.0 * static_cast<double>(use.used_bytes) / static_cast<double>(use.total_bytes));
  log_warning(cat(use.device, ": ", percent, " % of its memory is taken (",
                  bytes_text(static_cast<uint64_t>(use.used_bytes)), " of ",
                  bytes_text(static_cast<uint64_t>(use.total_bytes)),
                  "): should it run out, use a smaller editor.values.batch, or end what else runs there"));
}

}  // namespace

std::vector<at::Device> devices_with_memory(const Placement& placement, int64_t n_layers) {
  std::vector<at::Device> devices{Placement::host()};
  for (int64_t layer = 0; layer < n_layers; ++layer)
    if (std::find(devices.begin(), devices.end(), placement.device_of(layer)) == devices.end())
      devices.push_back(placement.device_of(layer));
  return devices;
}

void raise_to(PeakBytes& peaks, const PeakBytes& others) {
  for (const auto& [device, bytes] : others) {
    const auto at = std::find_if(peaks.begin(), peaks.end(), [&](const auto& peak) { return peak.first == device; });
    if (at == peaks.end())
      peaks.emplace_back(device, bytes);
    else
      at->second = std::max(at->second, bytes);
  }
}

PeakMeter::PeakMeter() {
  const std::lock_guard lock(meters().mutex);
  harvest();
  meters().all.push_back(this);
}

PeakMeter::~PeakMeter() {
  const std::lock_guard lock(meters().mutex);
  std::erase(meters().all, this);
}

void PeakMeter::add_devices(const std::vector<at::Device>& devices) {
  const std::lock_guard lock(meters().mutex);
  for (const at::Device device : devices)
    if (std::find(meters().devices.begin(), meters().devices.end(), device) == meters().devices.end())
      meters().devices.push_back(device);
}

PeakBytes PeakMeter::lap() {
  const std::lock_guard lock(meters().mutex);
  harvest();
  return std::exchange(since_lap_, {});
}

/// Adds every device's peak to all meters, and resets it. The caller holds the lock.
void PeakMeter::harvest() {
  for (const at::Device device : meters().devices) {
    const std::optional<DeviceMemory> memory = device_memory(device);
    if (!memory) continue;
    for (PeakMeter* meter : meters().all) raise_to(meter->since_lap_, {{device.str(), memory->peak_bytes}});
    reset_peak(device);
  }
}

std::vector<MemoryInUse> memory_in_use(const std::vector<at::Device>& devices) {
  std::vector<MemoryInUse> uses;
  for (const at::Device device : devices)
    if (const std::optional<DeviceMemory> memory = device_memory(device))
      uses.push_back({device_text(device), memory->used_bytes, memory->total_bytes});
  return uses;
}

MemoryWatch::MemoryWatch(const std::vector<at::Device>& devices)
    : MemoryWatch([devices] { return memory_in_use(devices); }) {
  PeakMeter::add_devices(devices);
}

MemoryWatch::MemoryWatch(Look look) : look_(std::move(look)) {
  thread_ = std::jthread([this, &told = reporter()](const std::stop_token& stop) {
    const ReporterScope scope(told);
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    do check();
    while (!wake.wait_for(lock, stop, kLook, [&] { return stop.stop_requested(); }));
  });
}

void MemoryWatch::check() {
  const std::lock_guard lock(mutex_);
  std::vector<MemoryInUse> uses;
  try {
    uses = look_();
  } catch (const std::exception&) {
    return;  // the job reports a device that failed
  }
  for (const MemoryInUse& use : uses)
    if (static_cast<double>(use.used_bytes) > kWarningShare * static_cast<double>(use.total_bytes) &&
        warned_.insert(use.device).second)
      warn(use);
}

}  // namespace lancet
