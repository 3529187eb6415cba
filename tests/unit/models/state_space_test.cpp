// Mamba-2's state space: tokens against the sum that defines them, chunks against tokens, and both gradients against
// finite differences.
#include "mixers/state_space.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::kExactF64;
using testing::nmse;

constexpr int64_t kSpaceRows = 2, kSpaceGroups = 2, kSpaceHeads = 6, kSpaceKeys = 5, kSpaceValues = 4;

/// Queries, keys, values, decays from none to strong, and a state before.
std::vector<Tensor> random_space(int64_t n, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto noise = [&](std::vector<int64_t> sizes) { return torch::randn(sizes, generator, torch::kDouble); };
  return {noise({kSpaceRows, kSpaceGroups, n, kSpaceKeys}), noise({kSpaceRows, kSpaceGroups, n, kSpaceKeys}),
          noise({kSpaceRows, kSpaceHeads, n, kSpaceValues}), -noise({kSpaceRows, kSpaceHeads, n}).square(),
          noise({kSpaceRows, kSpaceHeads, kSpaceKeys, kSpaceValues})};
}

StateSpaceTokens space_of(const std::vector<Tensor>& x) { return {x[0], x[1], x[2], x[3]}; }

/// A number that every output and every number of the state behind counts in, each otherwise.
Tensor weighed_space(const RuleResult& result) {
  const auto weigh = [](const Tensor& x) {
    return (x * torch::arange(x.numel(), torch::kDouble).view_as(x).add(1).sin()).sum();
  };
  return weigh(result.out_RHTV) + weigh(result.state_RHKV);
}

/// The definition as one sum: y_t = sum over i <= t of q_t k_i v_i times the decays between them.
TEST(StateSpace, TokensGiveTheSumThatDefinesThem) {
  const std::vector<Tensor> x = random_space(6, 4);
  const RuleResult result = state_space_by_tokens(space_of(x), {});
  const int64_t r = 1, h = 4, t = 5, g = h * kSpaceGroups / kSpaceHeads;
  Tensor expected = torch::zeros({kSpaceValues}, torch::kDouble);
  for (int64_t i = 0; i <= t; ++i) {
    const Tensor decay = x[3].select(0, r).select(0, h).slice(0, i + 1, t + 1).sum().exp();
    const Tensor score = x[0].select(0, r).select(0, g).select(0, t).dot(x[1].select(0, r).select(0, g).select(0, i));
    expected = expected + decay * score * x[2].select(0, r).select(0, h).select(0, i);
  }
  EXPECT_LE(nmse(result.out_RHTV.select(0, r).select(0, h).select(0, t), expected), kExactF64);
}

TEST(StateSpace, ChunksEqualTheRecurrenceWithAndWithoutAStateBefore) {
  const std::vector<Tensor> x = random_space(11, 1);
  for (const Tensor& state : {x[4], Tensor()}) {
    const RuleResult expected = state_space_by_tokens(space_of(x), state);
    for (const int64_t chunk : {2, 4, 11, 64}) {
      const RuleResult result = state_space(space_of(x), state, StateAfter::kGiven, chunk);
      EXPECT_LE(nmse(result.out_RHTV, expected.out_RHTV), kExactF64) << chunk;
      EXPECT_LE(nmse(result.state_RHKV, expected.state_RHKV), kExactF64) << chunk;
    }
  }
}

TEST(StateSpace, ARowInTwoPartsEqualsItWhole) {
  const std::vector<Tensor> x = random_space(9, 2);
  const RuleResult whole = state_space(space_of(x), {}, StateAfter::kGiven);
  std::vector<Tensor> first, second;
  for (size_t i = 0; i < 4; ++i) {
    first.push_back(x[i].narrow(2, 0, 4));
    second.push_back(x[i].narrow(2, 4, 5));
  }
  const RuleResult before = state_space(space_of(first), {}, StateAfter::kGiven);
  const RuleResult after = state_space(space_of(second), before.state_RHKV, StateAfter::kGiven);
  EXPECT_LE(nmse(torch::cat({before.out_RHTV, after.out_RHTV}, 2), whole.out_RHTV), kExactF64);
  EXPECT_LE(nmse(after.state_RHKV, whole.state_RHKV), kExactF64);
}

TEST(StateSpace, GradientsOfChunksAreThoseOfTheRecurrenceAndOfFiniteDifferences) {
  std::vector<Tensor> x = random_space(7, 3);
  for (Tensor& each : x) each.requires_grad_();
  const std::vector<Tensor> exact = torch::autograd::grad({weighed_space(state_space_by_tokens(space_of(x), x[4]))}, x);
  const std::vector<Tensor> chunked =
      torch::autograd::grad({weighed_space(state_space(space_of(x), x[4], StateAfter::kGiven, 3))}, x);
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(nmse(chunked[i], exact[i]), 1e-22) << i;
    const torch::NoGradGuard no_grad;
    const Tensor direction = x[i].cos();
    const auto moved = [&](double step) {
      std::vector<Tensor> there = x;
      there[i] = x[i] + step * direction;
      return weighed_space(state_space(space_of(there), there[4], StateAfter::kGiven, 3)).item<double>();
    };
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR((chunked[i] * direction).sum().item<double>(), slope, 1e-6 * std::abs(slope) + 1e-7) << i;
  }
}

}  // namespace
}  // namespace lancet
