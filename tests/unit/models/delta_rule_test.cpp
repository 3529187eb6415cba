// The gated delta rule: chunks against tokens, and both gradients against finite differences.
#include "mixers/delta_rule.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::kExactF64;
using testing::nmse;

constexpr int64_t kDeltaRows = 2, kDeltaHeads = 3, kDeltaKeys = 5, kDeltaValues = 4;

/// Keys of unit length, as mixers have them; decays from none to strong.
std::vector<Tensor> random_tokens(int64_t n, uint64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  const auto noise = [&](std::vector<int64_t> sizes) { return torch::randn(sizes, generator, torch::kDouble); };
  const Tensor key = noise({kDeltaRows, kDeltaHeads, n, kDeltaKeys});
  return {
      noise({kDeltaRows, kDeltaHeads, n, kDeltaKeys}),   key / key.norm(2, {3}, /*keepdim=*/true),
      noise({kDeltaRows, kDeltaHeads, n, kDeltaValues}), noise({kDeltaRows, kDeltaHeads, n}).sigmoid(),
      -noise({kDeltaRows, kDeltaHeads, n}).square(),     noise({kDeltaRows, kDeltaHeads, kDeltaKeys, kDeltaValues})};
}

DeltaTokens tokens_of(const std::vector<Tensor>& x) { return {x[0], x[1], x[2], x[3], x[4]}; }

/// A number that every output and every number of the state behind counts in, each otherwise.
Tensor weighed(const RuleResult& result) {
  const auto weigh = [](const Tensor& x) {
    return (x * torch::arange(x.numel(), torch::kDouble).view_as(x).add(1).sin()).sum();
  };
  return weigh(result.out_RHTV) + weigh(result.state_RHKV);
}

TEST(DeltaRule, ChunksEqualTheRecurrenceWithAndWithoutAStateBefore) {
  const std::vector<Tensor> x = random_tokens(11, 1);
  for (const Tensor& state : {x[5], Tensor()}) {
    const RuleResult expected = delta_rule_by_tokens(tokens_of(x), state);
    for (const int64_t chunk : {2, 4, 11, 64}) {
      const RuleResult result = delta_rule(tokens_of(x), state, StateAfter::kGiven, chunk);
      EXPECT_LE(nmse(result.out_RHTV, expected.out_RHTV), kExactF64) << chunk;
      EXPECT_LE(nmse(result.state_RHKV, expected.state_RHKV), kExactF64) << chunk;
    }
  }
}

TEST(DeltaRule, ARowInTwoPartsEqualsItWhole) {
  const std::vector<Tensor> x = random_tokens(9, 2);
  const RuleResult whole = delta_rule(tokens_of(x), {}, StateAfter::kGiven);
  std::vector<Tensor> first, second;
  for (size_t i = 0; i < 5; ++i) {
    first.push_back(x[i].narrow(2, 0, 4));
    second.push_back(x[i].narrow(2, 4, 5));
  }
  const RuleResult before = delta_rule(tokens_of(first), {}, StateAfter::kGiven);
  const RuleResult after = delta_rule(tokens_of(second), before.state_RHKV, StateAfter::kGiven);
  EXPECT_LE(nmse(torch::cat({before.out_RHTV, after.out_RHTV}, 2), whole.out_RHTV), kExactF64);
  EXPECT_LE(nmse(after.state_RHKV, whole.state_RHKV), kExactF64);
}

TEST(DeltaRule, GradientsOfChunksAreThoseOfTheRecurrenceAndOfFiniteDifferences) {
  std::vector<Tensor> x = random_tokens(7, 3);
  for (Tensor& each : x) each.requires_grad_();
  const std::vector<Tensor> exact = torch::autograd::grad({weighed(delta_rule_by_tokens(tokens_of(x), x[5]))}, x);
  const std::vector<Tensor> chunked =
      torch::autograd::grad({weighed(delta_rule(tokens_of(x), x[5], StateAfter::kGiven, 3))}, x);
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(nmse(chunked[i], exact[i]), 1e-22) << i;
    const torch::NoGradGuard no_grad;
    const Tensor direction = x[i].cos();
    const auto moved = [&](double step) {
      std::vector<Tensor> there = x;
      there[i] = x[i] + step * direction;
      return weighed(delta_rule(tokens_of(there), there[5], StateAfter::kGiven, 3)).item<double>();
    };
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR((chunked[i] * direction).sum().item<double>(), slope, 1e-6 * std::abs(slope) + 1e-7) << i;
  }
}

}  // namespace
}  // namespace lancet
