// The gated delta rule: chunks against tokens, and both gradients against finite differences.
#include "mixers/delta_rule.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "rule_checks_support.h"

namespace lancet {
namespace {

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

const testing::CheckedRule kDeltaRule{
    .random = random_tokens,
    .by_tokens = [](const auto& x, const Tensor& state) { return delta_rule_by_tokens(tokens_of(x), state); },
    .by_chunks = [](const auto& x, const Tensor& state,
                    int64_t chunk) { return delta_rule(tokens_of(x), state, StateAfter::kGiven, chunk); }};

TEST(DeltaRule, ChunksEqualTheRecurrenceWithAndWithoutAStateBefore) {
  testing::expect_chunks_equal_the_recurrence(kDeltaRule);
}

TEST(DeltaRule, ARowInTwoPartsEqualsItWhole) { testing::expect_a_row_in_two_parts_equals_it_whole(kDeltaRule); }

TEST(DeltaRule, GradientsOfChunksAreThoseOfTheRecurrenceAndOfFiniteDifferences) {
  testing::expect_right_gradients(kDeltaRule);
}

}  // namespace
}  // namespace lancet
