// The ridge solve of 100 requests with a factor at hand, beside torch's LU solve of the same system, f64.
#include <torch/types.h>

#include "benches.h"
#include "lancet/edit/solvers.h"
#include "machine.h"

namespace lancet::bench {
namespace {

constexpr int64_t kRequests = 100;
constexpr double kLambda = 300;

/// A system of the shape that a layer has: F keys wide, D = F / 4 outputs.
struct RidgeSystem {
  CovarianceFactor factor;
  Tensor keys_FN;
  Tensor residuals_DN;

  RidgeSystem(int64_t size, at::Device device) {
    torch::manual_seed(1);
    const auto options = torch::TensorOptions(torch::kDouble).device(device);
    const Tensor samples = torch::randn({size, size}, options);
    const Tensor moment =
        torch::matmul(samples, samples.t()) / static_cast<double>(size) + 0.01 * torch::eye(size, options);
    factor = factor_covariance(moment, 0, "benchmark");
    keys_FN = torch::randn({size, kRequests}, options);
    residuals_DN = torch::randn({size / 4, kRequests}, options);
  }

  Tensor system_FF() const { return kLambda * factor.covariance_FF + torch::matmul(keys_FN, keys_FN.t()); }
};

void run_solve(benchmark::State& state, at::Device device) {
  const torch::NoGradGuard no_grad;
  const RidgeSystem ridge(state.range(0), device);
  const RidgeProblem problem{.covariance = ridge.factor,
                             .covariance_weight = kLambda,
                             .keys_FN = ridge.keys_FN,
                             .history_FM = {},
                             .residuals_DN = ridge.residuals_DN};
  const Tensor system = ridge.system_FF();
  double solve_s = 0, lu_s = 0;
  LowRankDelta delta = solve_ridge(problem);
  for (auto _ : state) {  // in turn, so that both see the same machine
    const double seconds = seconds_of([&] {
      delta = solve_ridge(problem);
      wait_for(delta.right_RI);
    });
    state.SetIterationTime(seconds);
    solve_s += seconds;
    lu_s += seconds_of([&] { wait_for(at::linalg_solve(system, ridge.keys_FN)); });
  }
  const double iterations = static_cast<double>(state.iterations());
  count(state, {}, solve_s / iterations);
  state.counters["lu_ms"] = 1e3 * lu_s / iterations;
  state.counters["lu/solve"] = lu_s / solve_s;
  const Tensor change = torch::matmul(delta.left_OR, delta.right_RI);
  const Tensor error = torch::matmul(change, system) - torch::matmul(ridge.residuals_DN, ridge.keys_FN.t());
  state.counters["residual"] = (error.norm() / (change.norm() * system.norm())).item<double>();
}

}  // namespace

void register_solve(const Subject& subject, const BenchOptions& options) {
  const at::Device device = subject.model.placement().solve_device(0);
  auto* solve = benchmark::RegisterBenchmark("solve/requests:100", run_solve, device);
  solve->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const int64_t size : options.solve_sizes) solve->Arg(size);
}

}  // namespace lancet::bench
