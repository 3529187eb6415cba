// The ridge solve of some requests with a cached factor, which is read anew each time, beside torch's LU solve of the
// same system, f64; and what making the factor takes.
#include <torch/types.h>

#include "benches.h"
#include "lancet/core/strings.h"
#include "lancet/editing/solvers.h"
#include "lancet/kernels/gram.h"
#include "lancet/statistics/derived_store.h"
#include "machine.h"
#include "temporary_folder.h"

namespace lancet::bench {
namespace {

constexpr double kLambda = 300;

/// Samples that C is a mean over; with the small multiple of I its spectrum lies between 0.01 and about (1 + F / 1024).
constexpr int64_t kSamples = 1024;

/// A system of the shape that a layer has: F keys wide, D = F / 4 outputs. Holds two matrices of F x F: the factor,
/// which lies in its cache file's pages on a CPU, and the formed system for LU.
class RidgeSystem {
 public:
  RidgeSystem(int64_t size, int64_t requests, const Placement& placement, const std::filesystem::path& folder)
      : moments_(size, placement.solve_device(0)), store_(moments_, placement, config_, folder, 0.0) {
    config_.d_ffn = size;
    const std::vector<int64_t> layers{0};
    store_.prepare(layers, alone());
    const Tensor covariance = moments_.load(0).moment_FF;
    Tensor copy = covariance.clone();
    wait_for(copy);
    factor_s = seconds_of([&] { wait_for(cholesky_in_place(std::move(copy))); });
    keys_FN = torch::randn({size, requests}, covariance.options());
    residuals_DN = torch::randn({size / 4, requests}, covariance.options());
    system_FF = covariance;
    system_FF.addmm_(keys_FN, keys_FN.t(), kLambda, 1.0);
  }

  Tensor load_factor() const { return store_.load(0); }
  LowRankDelta solve(const Tensor& lower_FF) const {
    return solve_ridge({.lower_FF = lower_FF,
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
  double factor_s = 0;

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

  ModelConfig config_;
  SampledMoments moments_;
  FactorStore store_;
};

/// Runs from the cache to the change.
void run_solve(benchmark::State& state, const Placement& placement, const BenchOptions& options) {
  const torch::NoGradGuard no_grad;
  const TemporaryFolder folder;
  const RidgeSystem ridge(state.range(0), options.solve_requests, placement, folder.path());
  double load_s = 0, solve_s = 0, lu_s = 0;
  LowRankDelta delta;
  for (auto _ : state) {  // in turn, so that both see the same machine
    Tensor lower_FF;
    const double load = seconds_of([&] { wait_for(lower_FF = ridge.load_factor()); });
    const double solve = seconds_of([&] { wait_for((delta = ridge.solve(lower_FF)).right_RI); });
    state.SetIterationTime(load + solve);
    load_s += load;
    solve_s += solve;
    lu_s += seconds_of([&] { wait_for(at::linalg_solve(ridge.system_FF, ridge.keys_FN)); });
  }
  const double iterations = static_cast<double>(state.iterations());
  state.counters["factor_ms"] = 1e3 * ridge.factor_s;
  state.counters["load_ms"] = 1e3 * load_s / iterations;
  state.counters["solve_ms"] = 1e3 * solve_s / iterations;
  state.counters["lu_ms"] = 1e3 * lu_s / iterations;
  state.counters["lu/solve"] = lu_s / (load_s + solve_s);
  state.counters["residual"] = ridge.residual(delta);
  count(state, {}, (load_s + solve_s) / iterations);  // last: the peak memory is that of all of it
}

}  // namespace

void register_solve(const Subject& subject, const BenchOptions& options) {
  const std::string name = cat("solve/requests:", options.solve_requests);
  auto* solve = benchmark::RegisterBenchmark(
      name.c_str(), [&](benchmark::State& state) { run_solve(state, subject.model.placement(), options); });
  solve->ArgName("n")->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const int64_t size : options.solve_sizes) solve->Arg(size);
}

}  // namespace lancet::bench
