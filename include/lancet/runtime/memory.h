// How much memory a device has left, and what running out of it looks like.
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

// The host's memory as this process may use it: the machine's, or what a container's limit leaves of it.

struct HostMemory {
  int64_t total_bytes = 0;             ///< the machine's, or the limit where that is lower
  int64_t available_bytes = 0;         ///< room for new tensors; cached files count as available
  std::optional<int64_t> limit_bytes;  ///< the control group's, where it is below the machine's memory
};

/// `root`: where /proc and /sys lie; tests put their own there. nullopt when the system does not say.
std::optional<HostMemory> host_memory(const std::filesystem::path& root = "/");

/// The most memory that lay in this process's pages since reset_resident_peak(), or since it began.
int64_t resident_peak_bytes();
/// Resets the peak; where the system does not allow it, the peak stays that of the whole run.
void reset_resident_peak();

// Memory while a job runs: the most that each stage took on each device, and a warning before it runs out.

/// The host and every device of the placement that has layers, each once.
std::vector<at::Device> devices_with_memory(const Placement& placement, int64_t n_layers);

/// Bytes by device ("cpu", "cuda:0"), in the order of the devices.
using PeakBytes = std::vector<std::pair<std::string, int64_t>>;

/// Takes the larger of each device's.
void raise_to(PeakBytes& peaks, const PeakBytes& others);

/// What this process took at most. Several may live: each sees its own span of time.
class PeakMeter {
 public:
  PeakMeter();
  ~PeakMeter();
  PeakMeter(const PeakMeter&) = delete;
  PeakMeter& operator=(const PeakMeter&) = delete;

  /// Makes all meters look at these too from now on, beside the host.
  static void add_devices(const std::vector<at::Device>& devices);

  /// Returns the peaks since the last call, or since construction. Devices that do not tell are left out.
  PeakBytes lap();

 private:
  static void harvest();

  PeakBytes since_lap_;
};

/// What is taken of a device's memory, by this and other processes.
struct MemoryInUse {
  std::string device;
  int64_t used_bytes = 0;
  int64_t total_bytes = 0;
};

std::vector<MemoryInUse> memory_in_use(const std::vector<at::Device>& devices);

/// Looks once a second, from a thread of its own, and warns once for each device that more than 90 % is taken of.
class MemoryWatch {
 public:
  using Look = std::function<std::vector<MemoryInUse>()>;

  /// Watches the devices, and makes PeakMeters look at them too from now on.
  explicit MemoryWatch(const std::vector<at::Device>& devices);
  explicit MemoryWatch(Look look);

  /// Looks now.
  void check();

 private:
  Look look_;
  std::mutex mutex_;
  std::set<std::string> warned_;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace lancet
