// Mamba-1's state space: tokens against the recurrence that defines them, chunks against tokens, and gradients of both,
// those of the rates too, against finite differences.
#include "mixers/selective_space.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "rule_checks_support.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;

constexpr int64_t kScanRows = 2, kScanChannels = 6, kScanKeys = 5;

Tensor scan_noise(std::vector<int64_t> sizes, uint64_t seed) {
  return torch::randn(sizes, at::detail::createCPUGenerator(seed), torch::kDouble);
}

Tensor scan_rates() { return -scan_noise({kScanChannels, kScanKeys}, 9).square(); }

/// Queries, keys, values, steps from none to long, and a state before; what goes by token has it in the third place.
std::vector<Tensor> random_scan(int64_t n, uint64_t seed) {
  return {scan_noise({kScanRows, 1, n, kScanKeys}, seed), scan_noise({kScanRows, 1, n, kScanKeys}, seed + 100),
          scan_noise({kScanRows, kScanChannels, n}, seed + 200),
          scan_noise({kScanRows, kScanChannels, n}, seed + 300).square(),
          scan_noise({kScanRows, kScanChannels, kScanKeys, 1}, seed + 400)};
}

SelectiveTokens scan_of(const std::vector<Tensor>& x, const Tensor& rate_HK) {
  return {x[0].squeeze(1), x[1].squeeze(1), x[2], x[3], rate_HK};
}

const testing::CheckedRule kSelectiveRule{
    .random = random_scan,
    .by_tokens = [](const auto& x,
                    const Tensor& state) { return selective_space_by_tokens(scan_of(x, scan_rates()), state); },
    .by_chunks =
        [](const auto& x, const Tensor& state, int64_t chunk) {
          return selective_space(scan_of(x, scan_rates()), state, StateAfter::kGiven, chunk);
        }};

/// The definition, number by number: s <- exp(rate step) s + key value; the sum of query s.
TEST(SelectiveSpace, TokensGiveTheRecurrenceThatDefinesThem) {
  const std::vector<Tensor> x = random_scan(6, 4);
  const Tensor rate_HK = scan_rates();
  const RuleResult result = selective_space_by_tokens(scan_of(x, rate_HK), x.back());
  const int64_t r = 1, h = 4;
  double last = 0;
  for (int64_t k = 0; k < kScanKeys; ++k) {
    double state = x[4][r][h][k][0].item<double>();
    for (int64_t t = 0; t < 6; ++t)
      state = std::exp(rate_HK[h][k].item<double>() * x[3][r][h][t].item<double>()) * state +
              x[1][r][0][t][k].item<double>() * x[2][r][h][t].item<double>();
    last += x[0][r][0][5][k].item<double>() * state;
    EXPECT_NEAR(result.state_RHKV[r][h][k][0].item<double>(), state, 1e-12);
  }
  EXPECT_NEAR(result.out_RHTV[r][h][5][0].item<double>(), last, 1e-12);
}

TEST(SelectiveSpace, ChunksEqualTheRecurrenceWithAndWithoutAStateBefore) {
  testing::expect_chunks_equal_the_recurrence(kSelectiveRule);
}

TEST(SelectiveSpace, ARowInTwoPartsEqualsItWhole) {
  testing::expect_a_row_in_two_parts_equals_it_whole(kSelectiveRule);
}

TEST(SelectiveSpace, GradientsOfChunksAreThoseOfTheRecurrenceAndOfFiniteDifferences) {
  testing::expect_right_gradients(kSelectiveRule);
}

TEST(SelectiveSpace, GradientsOfRatesAreThoseOfTheRecurrence) {
  const std::vector<Tensor> x = random_scan(7, 5);
  const Tensor rate_HK = scan_rates().requires_grad_();
  const auto gradient = [&](const RuleResult& result) {
    return torch::autograd::grad({testing::weighed(result)}, {rate_HK})[0];
  };
  const Tensor exact = gradient(selective_space_by_tokens(scan_of(x, rate_HK), x.back()));
  EXPECT_GT(exact.norm().item<double>(), 0);
  EXPECT_LE(nmse(gradient(selective_space(scan_of(x, rate_HK), x.back(), StateAfter::kGiven, 3)), exact), 1e-22);
}

}  // namespace
}  // namespace lancet
