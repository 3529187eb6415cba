// What a device does in a value step, as torch's profiler (kineto) records it: kernels, copies, and the share of the
// time in which it does nothing. Times are of a profiled run, which is slower than others.
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "benches.h"
#include "lancet/training/values.h"
#include "machine.h"

namespace lancet::bench {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

/// What a device does in one run.
struct DeviceActivity {
  int64_t kernels = 0;
  int64_t copies = 0;  ///< and fills of memory
  double busy_s = 0;   ///< time in which at least one of them ran
};

bool is_copy(const std::string& name) { return name.starts_with("Memcpy") || name.starts_with("Memset"); }

DeviceActivity activity_of(const std::vector<profiler::KinetoEvent>& events) {
  DeviceActivity activity;
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  for (const profiler::KinetoEvent& event : events) {
    if (event.deviceType() != at::kCUDA || event.durationNs() == 0) continue;
    ++(is_copy(event.name()) ? activity.copies : activity.kernels);
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

DeviceActivity record(const std::function<void()>& work) {
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  return activity_of(profiler::disableProfiler()->events());
}

/// Measures the difference between optimisations of two steps and of more, in which the rest cancels: preparation, what
/// captures a graph, and the last step, which is forward.
void run_launches(benchmark::State& state, const Subject& subject, const BenchOptions& options) {
  constexpr int kFirst = 2, kSteps = 4;
  const CausalLM& model = subject.model;
  const int64_t layer = std::min(options.value_layer, model.config().n_layers - 2);
  const std::span requests = std::span(subject.requests).first(static_cast<size_t>(state.range(0)));
  ValueOptions values;
  values.stop_loss = 0;
  double seconds = 0;
  const auto optimise = [&](int64_t steps) {
    values.steps = steps;
    seconds = seconds_of([&] {
      wait_for(optimize_values(model, requests, layer, values, {alone(), nullptr, options.run.step_launch}).z_ND);
    });
  };
  optimise(kFirst);
  for (auto _ : state) {
    const DeviceActivity first = record([&] { optimise(kFirst); });
    const double first_s = seconds;
    const DeviceActivity more = record([&] { optimise(kFirst + kSteps); });
    const double step_s = std::max((seconds - first_s) / kSteps, 1e-9);
    state.SetIterationTime(step_s);
    state.counters["kernels/step"] = static_cast<double>(more.kernels - first.kernels) / kSteps;
    state.counters["copies/step"] = static_cast<double>(more.copies - first.copies) / kSteps;
    state.counters["idle_share"] = 1 - (more.busy_s - first.busy_s) / kSteps / step_s;
  }
}

}  // namespace

void register_launches(const Subject& subject, const BenchOptions& options) {
  if (subject.model.placement().is_host_only()) return;
  auto* added =
      benchmark::RegisterBenchmark("launches", [&](benchmark::State& state) { run_launches(state, subject, options); });
  added->ArgName("requests")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
  for (const int64_t requests : options.value_requests) added->Arg(requests);
}

}  // namespace lancet::bench
