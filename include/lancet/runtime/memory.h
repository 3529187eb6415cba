// How much free memory a device has, and how to recognise that it ran out.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lancet/runtime/devices.h"
#include "lancet/runtime/tensor.h"

namespace c10 {
class DeviceAllocator;
}

namespace lancet {

/// Returns the memory that is free for new tensors: on the host what the system can give, on an accelerator what its
/// driver reports. nullopt: the device does not report it.
std::optional<int64_t> free_bytes(at::Device device);

struct DeviceMemory {
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;  ///< memory that all processes use; what torch's allocator caches counts as free
  int64_t peak_bytes = 0;  ///< most memory that this process used since reset_peak(): resident memory on the host, else
                           ///< the memory of tensors
};

/// Returns the device's memory; nullopt: the device does not report it.
std::optional<DeviceMemory> device_memory(at::Device device);
/// Asks a given allocator, even if it has not been used yet.
DeviceMemory device_memory(c10::DeviceAllocator& allocator, int64_t index);
void reset_peak(at::Device device);

/// Returns every accelerator that torch can use, by index.
std::vector<at::Device> accelerators();

/// Whether an exception means that memory for a tensor could not be allocated, on the host or on an accelerator.
bool is_out_of_memory(const std::exception& error);

// The host's memory that this process may use: the machine's, or what a container's limit leaves of it.

struct HostMemory {
  int64_t total_bytes = 0;             ///< the machine's memory, or the limit if that is lower
  int64_t available_bytes = 0;         ///< memory for new tensors; cached files count as available
  std::optional<int64_t> limit_bytes;  ///< the control group's limit, if it is below the machine's memory
};

/// Reads the host's memory; nullopt: the system does not report it. `root`: where /proc and /sys are; tests use their
/// own.
std::optional<HostMemory> host_memory(const std::filesystem::path& root = "/");

/// Returns the peak resident memory of this process since reset_resident_peak(), or since it started.
int64_t resident_peak_bytes();
/// Resets the peak. If the system does not allow this, the peak remains that of the whole run.
void reset_resident_peak();

// Memory while a job runs: the peak of each stage on each device, and a warning before memory runs out.

/// Returns the host and every device of the placement that has layers, each once.
std::vector<at::Device> devices_with_memory(const Placement& placement, int64_t n_layers);

/// Bytes by device ("cpu", "cuda:0"), in the order of the devices.
using PeakBytes = std::vector<std::pair<std::string, int64_t>>;

/// Raises each device's peak to the other's if that is larger.
void raise_to(PeakBytes& peaks, const PeakBytes& others);

/// Measures this process's peak memory. Several meters may exist; each covers its own span of time.
class PeakMeter {
 public:
  PeakMeter();
  ~PeakMeter();
  PeakMeter(const PeakMeter&) = delete;
  PeakMeter& operator=(const PeakMeter&) = delete;

  /// Makes all meters watch these devices too from now on, in addition to the host.
  static void add_devices(const std::vector<at::Device>& devices);

  /// Returns the peaks since the last call, or since construction, without devices that do not report them.
  PeakBytes lap();

 private:
  static void harvest();

  PeakBytes since_lap_;
};

/// How much of a device's memory this and other processes use.
struct MemoryInUse {
  std::string device;
  int64_t used_bytes = 0;
  int64_t total_bytes = 0;
};

std::vector<MemoryInUse> memory_in_use(const std::vector<at::Device>& devices);

/// Checks once a second, in its own thread, and warns once for each device on which more than 90 % of the memory is
/// used.
class MemoryWatch {
 public:
  using Look = std::function<std::vector<MemoryInUse>()>;

  /// Watches the devices, and makes PeakMeters watch them too from now on.
  explicit MemoryWatch(const std::vector<at::Device>& devices);
  explicit MemoryWatch(Look look);

  /// Checks now.
  void check();

 private:
  Look look_;
  std::mutex mutex_;
  std::set<std::string> warned_;
  std::jthread thread_;  // declared last, because it uses the other members
};

}  // namespace lancet
