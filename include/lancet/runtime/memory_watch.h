// Memory while a job runs: the most that each stage took on each device, and a warning before it runs out.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lancet/runtime/placement.h"

namespace lancet {

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
