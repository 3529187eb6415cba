#include "lancet/runtime/memory_watch.h"

#include <algorithm>
#include <condition_variable>

#include "device_text.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

constexpr double kWarningShare = 0.9;
constexpr std::chrono::seconds kLook{1};

/// All meters that live: devices keep one peak each, and whoever sets that back gives it to all meters first.
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

/// Moves every device's peak into all meters, and sets it back. Under the lock.
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
    return;  // a device that has failed is the job's to report
  }
  for (const MemoryInUse& use : uses)
    if (static_cast<double>(use.used_bytes) > kWarningShare * static_cast<double>(use.total_bytes) &&
        warned_.insert(use.device).second)
      warn(use);
}

}  // namespace lancet
