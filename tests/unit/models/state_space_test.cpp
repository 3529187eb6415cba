// Mamba-2's state space: tokens against the sum that defines them, chunks against tokens, and both gradients against
// finite differences.
#include "mixers/state_space.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "rule_checks_support.h"
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

const testing::CheckedRule kStateSpaceRule{
    .random = random_space,
    .by_tokens = [](const auto& x, const Tensor& state) { return state_space_by_tokens(space_of(x), state); },
    .by_chunks = [](const auto& x, const Tensor& state,
                    int64_t chunk) { return state_space(space_of(x), state, StateAfter::kGiven, chunk); }};

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
  testing::expect_chunks_equal_the_recurrence(kStateSpaceRule);
}

TEST(StateSpace, ARowInTwoPartsEqualsItWhole) { testing::expect_a_row_in_two_parts_equals_it_whole(kStateSpaceRule); }

TEST(StateSpace, GradientsOfChunksAreThoseOfTheRecurrenceAndOfFiniteDifferences) {
  testing::expect_right_gradients(kStateSpaceRule);
}

}  // namespace
}  // namespace lancet
