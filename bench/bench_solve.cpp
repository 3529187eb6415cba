// The ridge solve of 100 requests with a cached factor, which is read anew each time, beside torch's LU solve of the
// same system, f64.
#include <torch/types.h>

#include "benches.h"
#include "lancet/edit/solvers.h"
#include "lancet/statistics/factor_store.h"
#include "machine.h"
#include "temporary_folder.h"

namespace lancet::bench {
namespace {

constexpr int64_t kRequests = 100;
constexpr double kLambda = 300;

/// Samples that C is a mean over; with the small multiple of I its spectrum lies between 0.01 and about (1 + F / 1024).
constexpr int64_t kSamples = 1024;

/// A system of the shape that a layer has: F keys wide, D = F / 4 outputs. Holds two matrices of F x F: the factor,
/// which lies in its cache file's pages on a CPU, and the formed system for LU.
class RidgeSystem {
 public:
  RidgeSystem(int64_t size, const Placement& placement, const std::filesystem::path& folder)
      : moments_(size, placement.solve_device(0)), store_(moments_, placement, size, folder, 0.0) {
    const std::vector<int64_t> layers{0};
    store_.prepare(layers, alone());
    const Tensor covariance = moments_.load(0).moment_FF;
    keys_FN = torch::randn({size, kRequests}, covariance.options());
    residuals_DN = torch::randn({size / 4, kRequests}, covariance.options());
    system_FF = covariance;
    system_FF.addmm_(keys_FN, keys_FN.t(), kLambda, 1.0);
  }

  /// From the cache to the change.
  LowRankDelta solve() const {
    return solve_ridge({.lower_FF = store_.load(0),
                        .covariance_weight = kLambda,
                        .keys_FN = keys_FN,
                        .history_FM = {},
                        .residuals_DN = residuals_DN});
  }

  /// ||Delta A - R K^T|| / (||Delta|| ||A||).
  double residual(const LowRankDelta& delta) const {
    const Tensor change = torch::matmul(delta.left_OR, delta.right_RI);
    Tensor error = torch::matmul(change, system_FF);
    error.addmm_(residuals_DN, keys_FN.t(), 1.0, -1.0);
    return (error.norm() / (change.norm() * system_FF.norm())).item<double>();
  }

  Tensor keys_FN, residuals_DN;
  Tensor system_FF;  ///< lambda C + K K^T

 private:
  /// C, the same each time.
  class SampledMoments final : public MomentSource {
   public:
    SampledMoments(int64_t size, at::Device device) : size_(size), device_(device) {}
    std::string content_key(int64_t) const override { return "benchmark"; }
    void prepare(std::span<const int64_t>, Communicator&) override {}
    Covariance load(int64_t) const override {
      torch::manual_seed(1);
      const Tensor samples = torch::randn({size_, kSamples}, torch::TensorOptions(torch::kDouble).device(device_));
      Tensor moment = torch::matmul(samples, samples.t()).div_(static_cast<double>(kSamples));
      moment.diagonal().add_(0.01);
      return {moment, kSamples};
    }
    bool from_cache(int64_t) const override { return false; }

   private:
    int64_t size_;
    at::Device device_;
  };

  SampledMoments moments_;
  FactorStore store_;
};

void run_solve(benchmark::State& state, const Placement& placement) {
  const torch::NoGradGuard no_grad;
  const TemporaryFolder folder;
  const RidgeSystem ridge(state.range(0), placement, folder.path());
  double solve_s = 0, lu_s = 0;
  LowRankDelta delta;
  for (auto _ : state) {  // in turn, so that both see the same machine
    const double seconds = seconds_of([&] {
      delta = ridge.solve();
      wait_for(delta.right_RI);
    });
    state.SetIterationTime(seconds);
    solve_s += seconds;
    lu_s += seconds_of([&] { wait_for(at::linalg_solve(ridge.system_FF, ridge.keys_FN)); });
  }
  const double iterations = static_cast<double>(state.iterations());
  state.counters["lu_ms"] = 1e3 * lu_s / iterations;
  state.counters["lu/solve"] = lu_s / solve_s;
  state.counters["residual"] = ridge.residual(delta);
  count(state, {}, solve_s / iterations);  // last: the peak memory is that of all of it
}

}  // namespace

void register_solve(const Subject& subject, const BenchOptions& options) {
  auto* solve = benchmark::RegisterBenchmark(
      "solve/requests:100", [&](benchmark::State& state) { run_solve(state, subject.model.placement()); });
  solve->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const int64_t size : options.solve_sizes) solve->Arg(size);
}

}  // namespace lancet::bench
