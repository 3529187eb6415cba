// What a device does in a value step, as torch's profiler (kineto) records it: kernels, copies, and the share of the
// time in which it does nothing; on stderr, what takes the most time, by name. Times are of a profiled run, which is
// slower than others.
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>
#include <map>
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

/// Launches of one name.
struct Launches {
  int64_t count = 0;
  double ms = 0;
};

/// What a device does in one run.
struct DeviceActivity {
  int64_t kernels = 0;
  int64_t copies = 0;  ///< and fills of memory
  double busy_s = 0;   ///< time in which at least one of them ran
  std::map<std::string, Launches> by_name;
};

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

DeviceActivity record(const std::function<void()>& work) {
  const std::set<ActivityType> activities{ActivityType::CPU, ActivityType::CUDA};
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  work();
  return activity_of(profiler::disableProfiler()->events());
}

/// Tells what took the most time in a step, from runs of which one has `steps` more.
void print_slowest(const DeviceActivity& first, const DeviceActivity& more, int steps, int64_t requests) {
  constexpr size_t kShown = 24;
  constexpr int kNameWidth = 96;
  std::vector<std::pair<Launches, std::string>> rows;
  for (const auto& [name, launches] : more.by_name) {
    const auto same = first.by_name.find(name);
    const Launches before = same == first.by_name.end() ? Launches{} : same->second;
    rows.push_back({{launches.count - before.count, launches.ms - before.ms}, name});
  }
  std::ranges::sort(rows, std::greater{}, [](const auto& row) { return row.first.ms; });
  if (rows.size() > kShown) rows.resize(kShown);
  std::fprintf(stderr, "A step of %lld requests: ms, launches, name\n", static_cast<long long>(requests));
  for (const auto& [launches, name] : rows)
    std::fprintf(stderr, "%9.3f %7.1f  %.*s\n", launches.ms / steps, static_cast<double>(launches.count) / steps,
                 kNameWidth, name.c_str());
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
    print_slowest(first, more, kSteps, state.range(0));
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
