// One edit out of a batch, by what is stored of it, beside the solve of the batch without it: of 1,000 keys, f64 on the
// host.
#include <torch/types.h>

#include "benches.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/downdate.h"
#include "lancet/editing/solvers.h"
#include "machine.h"

namespace lancet::bench {
namespace {

constexpr int64_t kEdits = 1000, kInputs = 2048, kOutputs = 512;
constexpr double kWeight = 300;

void run_downdate(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const auto columns = [](int64_t rows, int64_t n) { return torch::randn({rows, n}, torch::kDouble); };
  const Tensor samples = columns(kInputs, 2 * kInputs);
  const Tensor lower_FF = at::linalg_cholesky(samples.matmul(samples.t()) / (2.0 * kInputs));
  const WeightId id{WeightKind::kDown, 0};
  SolvedSystem system{.id = id, .keys_FN = columns(kInputs, kEdits), .residuals_DN = columns(kOutputs, kEdits)};
  const auto solve = [&](int64_t n) {
    return solve_ridge({.lower_FF = lower_FF,
                        .covariance_weight = kWeight,
                        .keys_FN = system.keys_FN.narrow(1, 0, n),
                        .history_FM = {},
                        .residuals_DN = system.residuals_DN.narrow(1, 0, n)});
  };
  BatchEntry entry;
  for (int64_t i = 0; i < kEdits; ++i) {
    system.edits.push_back({i});
    entry.columns.push_back(i);
  }
  entry.edits.resize(kEdits);
  EditedBatch batch;
  batch.changes = {{id, {solve(kEdits)}}};
  batch.systems = {system};
  ReducedBatch reduced;
  double solve_s = 0, downdate_s = 0;
  LowRankDelta again;
  for (auto _ : state) {
    const double seconds = seconds_of([&] { reduced = without_edits(batch, entry, {kEdits - 1}); });
    state.SetIterationTime(seconds);
    downdate_s += seconds;
    solve_s += seconds_of([&] { again = solve(kEdits - 1); });
  }
  const auto& left = std::get<LowRankDelta>(reduced.batch.changes[0].deltas[0]);
  state.counters["solve_ms"] = 1e3 * solve_s / static_cast<double>(state.iterations());
  state.counters["error"] = ((left.right_RI - again.right_RI).norm() / again.right_RI.norm()).item<double>();
  state.counters["bound"] = reduced.error;
  count(state, {}, downdate_s / static_cast<double>(state.iterations()));
}

}  // namespace

void register_downdate() {
  const std::string name = cat("downdate/edits:", kEdits, "/inputs:", kInputs, "/outputs:", kOutputs);
  benchmark::RegisterBenchmark(name.c_str(), run_downdate)->UseManualTime()->Unit(benchmark::kMillisecond);
}

}  // namespace lancet::bench
