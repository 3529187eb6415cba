// Factors, null spaces and solves in f64 on a device against the host's.
#include "lancet/editing/solvers.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "lancet/core/error.h"
#include "lancet/statistics/derived_store.h"
#include "support/on_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::numbers;

/// Two ways of computing one f64 solve of a well-conditioned system.
constexpr double kSameSolve = 1e-20;
constexpr int64_t kSize = 300;

class SolversOnDevice : public testing::OnDevice {
 protected:
  Tensor there(const Tensor& x) const { return x.to(device()); }

  static Tensor covariance() {
    const Tensor samples = numbers({4 * kSize, kSize}, 7);
    return samples.t().matmul(samples) / (4.0 * static_cast<double>(kSize));
  }
  static Tensor factor(at::Device device) {
    return factor_covariance([&] { return covariance().to(device); }, 1e-3, "test");
  }

  Tensor keys_FN = numbers({kSize, 40}, 8), history_FM = numbers({kSize, 25}, 9), residuals_DN = numbers({50, 40}, 10);
};
LANCET_ON_EACH_DEVICE(SolversOnDevice);

TEST_P(SolversOnDevice, AFactorIsTheHosts) {
  const Tensor ours = factor(device());
  EXPECT_EQ(ours.device().type(), device().type());
  EXPECT_LE(nmse(ours.tril(), factor(Placement::host()).tril()), kSameSolve);
}

TEST_P(SolversOnDevice, WhatHasNoFactorIsNamed) {
  const auto singular = [&] { return there(torch::ones({kSize, kSize}, torch::kDouble).neg()); };
  EXPECT_THROW(factor_covariance(singular, 0.0, "test"), NumericError);
}

TEST_P(SolversOnDevice, ARidgeSolveIsTheHostsInBothSpaces) {
  for (const SolveSpace space : {SolveSpace::kKeys, SolveSpace::kWeights}) {
    const auto solve = [&](at::Device at) {
      return to_dense(solve_ridge({factor(at), 20, keys_FN.to(at), history_FM.to(at), residuals_DN.to(at)}, space));
    };
    EXPECT_LE(nmse(solve(device()), solve(Placement::host())), kSameSolve);
  }
}

TEST_P(SolversOnDevice, AnEqualitySolveIsTheHosts) {
  const auto solve = [&](at::Device at) {
    return to_dense(solve_equality({factor(at), 20, 0.0, keys_FN.to(at), residuals_DN.to(at)}).change);
  };
  EXPECT_LE(nmse(solve(device()), solve(Placement::host())), kSameSolve);
}

TEST_P(SolversOnDevice, ARankOneSolveIsTheHosts) {
  const Tensor key_F = keys_FN.select(1, 0), residual_D = residuals_DN.select(1, 0);
  const auto solve = [&](at::Device at) {
    return to_dense(solve_rank_one({factor(at), key_F.to(at), key_F.to(at), residual_D.to(at)}));
  };
  EXPECT_LE(nmse(solve(device()), solve(Placement::host())), kSameSolve);
}

TEST_P(SolversOnDevice, ANullSpaceAndItsSolveAreTheHosts) {
  const auto space_on = [&](at::Device at) { return make_null_space(covariance().to(at), {.below = 0.8}, "test"); };
  const NullSpace ours = space_on(device()), host = space_on(Placement::host());
  EXPECT_EQ(ours.rank, host.rank);
  EXPECT_GT(host.rank, 10);
  EXPECT_LE(nmse(ours.project(there(keys_FN)), host.project(keys_FN)), kSameSolve);
  for (const SolveSpace space : {SolveSpace::kKeys, SolveSpace::kWeights}) {
    const Tensor got =
        to_dense(solve_null_space({ours, 10, there(keys_FN), there(history_FM), there(residuals_DN)}, space));
    EXPECT_LE(nmse(got, to_dense(solve_null_space({host, 10, keys_FN, history_FM, residuals_DN}, space))), kSameSolve);
  }
}

TEST_P(SolversOnDevice, ALeastSquaresSolveIsTheHosts) {
  const Tensor inputs_MI = keys_FN.t(), values_MO = residuals_DN.t();
  const Tensor expected = to_dense(solve_least_squares(inputs_MI, values_MO));
  EXPECT_LE(nmse(to_dense(solve_least_squares(there(inputs_MI), there(values_MO))), expected), kSameSolve);
}

TEST_P(SolversOnDevice, KeyStrengthsAreTheHosts) {
  const Tensor expected = leverages(factor(Placement::host()), keys_FN);
  EXPECT_LE(nmse(leverages(factor(device()), there(keys_FN)), expected), kSameSolve);
}

}  // namespace
}  // namespace lancet
