#include "lancet/editing/solvers.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/statistics/derived_store.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::kExactSolve;
using testing::nmse;

/// f64: the identities hold to rounding; calibrated once (largest seen 3e-27).

struct RidgeCase {
  Tensor covariance_FF, lower_FF;
  Tensor keys_FN, history_FM, residuals_DN;

  RidgeCase(int64_t size, int64_t n_new, int64_t n_history) {
    torch::manual_seed(7);
    const Tensor samples = torch::randn({4 * size, size}, torch::kDouble);
    covariance_FF = samples.t().matmul(samples) / (4.0 * static_cast<double>(size));
    lower_FF = factor_covariance([&] { return covariance_FF.clone(); }, 0.0, "test");
    keys_FN = torch::randn({size, n_new}, torch::kDouble);
    if (n_history > 0) history_FM = torch::randn({size, n_history}, torch::kDouble);
    residuals_DN = torch::randn({5, n_new}, torch::kDouble);
  }
  RidgeProblem ridge(double weight) const { return {lower_FF, weight, keys_FN, history_FM, residuals_DN}; }
  /// lambda C + H H^T + K K^T.
  Tensor system(double weight) const {
    Tensor sum = weight * covariance_FF + keys_FN.matmul(keys_FN.t());
    return history_FM.defined() ? sum + history_FM.matmul(history_FM.t()) : sum;
  }
};

TEST(SolveRidge, SatisfiesTheNormalEquationsInBothSpaces) {
  for (const int64_t n_new : {1, 3, 24, 40}) {
    const RidgeCase problem(24, n_new, 0);
    for (const SolveSpace space : {SolveSpace::kKeys, SolveSpace::kWeights, SolveSpace::kAuto}) {
      const Tensor delta = to_dense(solve_ridge(problem.ridge(300), space));
      EXPECT_LE(nmse(delta.matmul(problem.system(300)), problem.residuals_DN.matmul(problem.keys_FN.t())), kExactSolve)
          << n_new;
    }
  }
}

TEST(SolveRidge, EqualsAcrossTheSwitchOfSpaces) {
  // size 24: 23, 24 and 25 keys in all lie on both sides of the switch
  for (const int64_t n_history : {18, 19, 20}) {
    const RidgeCase problem(24, 5, n_history);
    const Tensor in_keys = to_dense(solve_ridge(problem.ridge(2), SolveSpace::kKeys));
    const Tensor in_weights = to_dense(solve_ridge(problem.ridge(2), SolveSpace::kWeights));
    EXPECT_LE(nmse(in_keys, in_weights), kExactSolve);
    EXPECT_LE(nmse(to_dense(solve_ridge(problem.ridge(2))), in_weights), kExactSolve);
  }
}

TEST(SolveRidge, HistoryHoldsEarlierKeysInPlace) {
  const RidgeCase free(24, 4, 0);
  RidgeCase held = free;
  held.history_FM = 30 * torch::randn({24, 6}, torch::kDouble);
  const Tensor moved_free = to_dense(solve_ridge(free.ridge(1))).matmul(held.history_FM).norm();
  const Tensor delta = to_dense(solve_ridge(held.ridge(1)));
  EXPECT_LT(delta.matmul(held.history_FM).norm().item<double>(), 1e-2 * moved_free.item<double>());
  EXPECT_LE(nmse(delta.matmul(held.system(1)), held.residuals_DN.matmul(held.keys_FN.t())), kExactSolve);
}

TEST(SolveRidge, KeepsOneColumnPerRequest) {
  const RidgeCase problem(24, 3, 2);
  const LowRankDelta delta = solve_ridge(problem.ridge(10));
  EXPECT_EQ(delta.left_OR.sizes(), (std::vector<int64_t>{5, 3}));
  EXPECT_EQ(delta.right_RI.sizes(), (std::vector<int64_t>{3, 24}));
  EXPECT_TRUE(delta.left_OR.equal(problem.residuals_DN));
}

TEST(SolveRidge, TakesTheFactorInEitherLayout) {
  const RidgeCase problem(24, 5, 4);
  RidgeProblem by_rows = problem.ridge(3);
  by_rows.lower_FF = problem.lower_FF.contiguous();
  ASSERT_TRUE(problem.lower_FF.t().is_contiguous());
  EXPECT_LE(nmse(to_dense(solve_ridge(by_rows)), to_dense(solve_ridge(problem.ridge(3)))), kExactSolve);
}

TEST(SolveRidge, RefusesKeysThatAreNotFinite) {
  const RidgeCase problem(24, 5, 4);
  problem.keys_FN[3][1] = std::nan("");
  for (const SolveSpace space : {SolveSpace::kKeys, SolveSpace::kWeights})
    EXPECT_THROW(solve_ridge(problem.ridge(3), space), NumericError);
}

/// Bytes of CPU tensors that `work` holds at most beyond what there was.
int64_t peak_bytes(const std::function<void()>& work) {
  struct Peak final : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
      live += bytes;
      peak = std::max(peak, live);
    }
    bool memoryProfilingEnabled() const override { return true; }
    int64_t live = 0, peak = 0;
  };
  const auto counter = std::make_shared<Peak>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  work();
  return counter->peak;
}

TEST(SolveRidge, CopiesNoMatrixOfTheFactorsSize) {
  constexpr int64_t kOwnSize = 200;
  const RidgeCase problem(kOwnSize, 3, 4);
  RidgeProblem by_rows = problem.ridge(3);
  by_rows.lower_FF = problem.lower_FF.contiguous();
  const int64_t matrix = kOwnSize * kOwnSize * 8;
  EXPECT_GE(peak_bytes([&] { problem.lower_FF.clone(); }), matrix);  // that such a copy would be seen
  for (const RidgeProblem& ridge : {problem.ridge(3), by_rows})
    EXPECT_LT(peak_bytes([&] { solve_ridge(ridge, SolveSpace::kKeys); }), matrix / 2);
  // the system itself, and its factor in the same memory
  EXPECT_LT(peak_bytes([&] { solve_ridge(problem.ridge(3), SolveSpace::kWeights); }), 3 * matrix / 2);
}

TEST(FactorCovariance, HoldsOneMatrix) {
  const RidgeCase problem(200, 1, 0);
  const auto covariance = [&] { return problem.covariance_FF.clone(); };
  EXPECT_LT(peak_bytes([&] { factor_covariance(covariance, 1e-3, "test"); }), 3 * 200 * 200 * 8 / 2);
}

TEST(FactorCovariance, FactorsInPlaceWithTheRidgeOnTheDiagonal) {
  const RidgeCase problem(24, 1, 0);
  const Tensor memory = problem.covariance_FF.clone();
  const Tensor lower = factor_covariance([&] { return memory; }, 0.5, "test");
  EXPECT_EQ(lower.data_ptr(), memory.data_ptr());
  EXPECT_TRUE(lower.equal(lower.tril()));
  const Tensor lifted =
      problem.covariance_FF + 0.5 * problem.covariance_FF.trace() / 24 * torch::eye(24, torch::kDouble);
  EXPECT_LE(nmse(lower.matmul(lower.t()), lifted), kExactSolve);
}

TEST(FactorCovariance, NamesTheRidgeThatWorks) {
  torch::manual_seed(3);
  const Tensor samples = torch::randn({10, 24}, torch::kDouble);  // rank 10 of 24
  const Tensor singular = samples.t().matmul(samples) / 10.0;
  const auto covariance = [&] { return singular - 1e-9 * torch::eye(24, torch::kDouble); };
  std::string message;
  try {
    factor_covariance(covariance, 0.0, "layer 3");
  } catch (const NumericError& error) {
    message = error.what();
  }
  ASSERT_NE(message.find("layer 3: the covariance is not positive definite: smallest eigenvalue"), std::string::npos)
      << message;
  const size_t at = message.find("statistics.ridge: ");
  ASSERT_NE(at, std::string::npos) << message;
  const double ridge = std::stod(message.substr(at + 18));
  EXPECT_LT(ridge, 1e-6);
  EXPECT_NO_THROW(factor_covariance(covariance, ridge, "layer 3"));
}

TEST(FactorCovariance, NamesNoRidgeForACovarianceOfZeros) {
  try {
    factor_covariance([&] { return torch::zeros({4, 4}, torch::kDouble); }, 1e-3, "layer 0");
    FAIL();
  } catch (const NumericError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("layer 0: the covariance has the mean diagonal 0, expected a positive one"),
              std::string::npos);
    for (const char* part : {"nan", "statistics.ridge"}) EXPECT_EQ(message.find(part), std::string::npos) << message;
  }
}

TEST(FactorCovariance, RefusesNaN) {
  Tensor covariance = torch::eye(4, torch::kDouble);
  covariance[1][1] = std::nan("");
  EXPECT_THROW(factor_covariance([&] { return covariance.clone(); }, 0.0, "layer 0"), NumericError);
}

}  // namespace
}  // namespace lancet
