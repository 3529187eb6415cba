#include "device_profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

namespace lancet::bench {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

bool is_copy(const std::string& name) { return name.starts_with("Memcpy") || name.starts_with("Memset"); }

DeviceActivity activity_of(const std::vector<profiler::KinetoEvent>& events) {
  DeviceActivity activity;
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  for (const profiler::KinetoEvent& event : events) {
    if (event.deviceType() != at::kCUDA || event.durationNs() == 0) continue;
    ++(is_copy(event.name()) ? activity.copies : activity.kernels);
    Launches& same = activity.by_name[event.name()];
    ++same.count;
    same.ms += static_cast<double>(event.durationNs()) / 1e6;
    spans.emplace_back(event.startNs(), event.endNs());
  }
  std::ranges::sort(spans);
  uint64_t end = 0, busy_ns = 0;
  for (const auto& [from, to] : spans) {
    if (to <= end) continue;
    busy_ns += to - std::max(from, end);
    end = to;
  }
  activity.busy_s = static_cast<double>(busy_ns) / 1e9;
  return activity;
}

}  // namespace

DeviceActivity profile(const std::function<void()>& work) {
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  return activity_of(profiler::disableProfiler()->events());
}

DeviceActivity difference(const DeviceActivity& more, const DeviceActivity& less, double divisor) {
  DeviceActivity found{(more.kernels - less.kernels) / divisor, (more.copies - less.copies) / divisor,
                       (more.busy_s - less.busy_s) / divisor, more.by_name};
  for (auto& [name, launches] : found.by_name) {
    const auto same = less.by_name.find(name);
    const Launches before = same == less.by_name.end() ? Launches{} : same->second;
    launches = {(launches.count - before.count) / divisor, (launches.ms - before.ms) / divisor};
  }
  return found;
}

void print_slowest(std::string_view title, const DeviceActivity& activity) {
  constexpr size_t kShown = 24;
  constexpr int kNameWidth = 96;
  std::vector<std::pair<std::string, Launches>> rows(activity.by_name.begin(), activity.by_name.end());
  std::ranges::sort(rows, std::greater{}, [](const auto& row) { return row.second.ms; });
  if (rows.size() > kShown) rows.resize(kShown);
  std::fprintf(stderr, "%.*s: ms, launches, name\n", static_cast<int>(title.size()), title.data());
  for (const auto& [name, launches] : rows)
    std::fprintf(stderr, "%9.3f %7.1f  %.*s\n", launches.ms, launches.count, kNameWidth, name.c_str());
}

}  // namespace lancet::bench
