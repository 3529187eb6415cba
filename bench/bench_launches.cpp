// What a device is asked to do in a value step and in a pass of statistics: kernels, copies, and the share of the time
// in which it does nothing; on stderr, what takes the most time.
#include <torch/types.h>

#include <algorithm>

#include "benches.h"
#include "device_profile.h"
#include "lancet/core/strings.h"
#include "lancet/statistics/covariance.h"
#include "lancet/training/values.h"
#include "machine.h"

namespace lancet::bench {
namespace {

void count(benchmark::State& state, const std::string& per, const DeviceActivity& activity, double seconds) {
  state.SetIterationTime(seconds);
  state.counters["kernels" + per] = activity.kernels;
  state.counters["copies" + per] = activity.copies;
  state.counters["idle_share"] = 1 - activity.busy_s / seconds;
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
    const DeviceActivity first = profile([&] { optimise(kFirst); });
    const double first_s = seconds;
    const DeviceActivity more = profile([&] { optimise(kFirst + kSteps); });
    const DeviceActivity step = difference(more, first, kSteps);
    print_slowest(cat("A value step of ", state.range(0), " requests"), step);
    count(state, "/step", step, std::max((seconds - first_s) / kSteps, 1e-9));
  }
}

void run_statistics(benchmark::State& state, const Subject& subject, const BenchOptions& options) {
  const CausalLM& model = subject.model;
  const int64_t chunk_tokens = statistics_chunk_tokens(model.config(), model.placement(), options.statistics_layers);
  for (auto _ : state) {
    double seconds = 0;
    const DeviceActivity pass = profile([&] {
      seconds = seconds_of([&] {
        for (const Covariance& covariance : collect_covariances(model, subject.corpus, options.statistics_layers,
                                                                alone(), {.chunk_tokens = chunk_tokens}))
          wait_for(covariance.moment_FF);
      });
    });
    print_slowest(cat("Statistics of ", subject.corpus.tokens, " tokens"), pass);
    count(state, "", pass, seconds);
  }
}

}  // namespace

void register_launches(const Subject& subject, const BenchOptions& options) {
  if (subject.model.placement().is_host_only()) return;
  auto* added =
      benchmark::RegisterBenchmark("launches", [&](benchmark::State& state) { run_launches(state, subject, options); });
  added->ArgName("requests")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
  for (const int64_t requests : options.value_requests) added->Arg(requests);
  benchmark::RegisterBenchmark("launches/statistics",
                               [&](benchmark::State& state) { run_statistics(state, subject, options); })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace lancet::bench
