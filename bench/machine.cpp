#include "machine.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <sys/resource.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>

#include "lancet/runtime/devices.h"

namespace lancet::bench {
namespace {

double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);  // Linux counts in KiB
}

double measure_peak(at::Device device, at::ScalarType dtype, int64_t size) {
  constexpr int kTries = 12;
  const torch::NoGradGuard no_grad;
  const auto options = torch::TensorOptions(dtype).device(device);
  const Tensor a = torch::randn({size, size}, options), b = torch::randn({size, size}, options);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) best = std::min(best, seconds_of([&] { wait_for(torch::matmul(a, b)); }));
  const double n = static_cast<double>(size);
  return 2.0 * n * n * n / best;
}

}  // namespace

double peak_device_bytes(at::Device device) {
  if (device == Placement::host()) return 0;
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return static_cast<double>(
      stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak);
}

void wait_for(const Tensor& result) { result.flatten()[0].item(); }

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double matmul_peak(at::Device device, at::ScalarType dtype, int64_t size) {
  static std::map<at::ScalarType, double> known;
  const auto at = known.find(dtype);
  if (at != known.end()) return at->second;
  return known[dtype] = measure_peak(device, dtype, size);
}

void count(benchmark::State& state, const Work& work, double seconds) {
  if (work.tokens > 0) state.counters["tokens/s"] = work.tokens / seconds;
  if (work.flop > 0) state.counters["TFLOP/s"] = work.flop / seconds / 1e12;
  if (work.flop > 0 && work.peak_flops > 0) state.counters["peak_share"] = work.flop / seconds / work.peak_flops;
  state.counters["resident_bytes"] = peak_resident_bytes();
  if (work.device_bytes > 0) state.counters["device_bytes"] = work.device_bytes;
}

double time_iterations(benchmark::State& state, const std::function<void()>& work) {
  double total = 0;
  for (auto _ : state) {
    const double seconds = seconds_of(work);
    state.SetIterationTime(seconds);
    total += seconds;
  }
  return total / static_cast<double>(state.iterations());
}

}  // namespace lancet::bench
