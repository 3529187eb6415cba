#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "lancet/core/error.h"
#include "lancet/deltas/weight_diff.h"
#include "support/io_support.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using namespace testing;

/// [rows, columns] f64 with these singular values.
Tensor with_values(int64_t rows, int64_t columns, const std::vector<double>& values) {
  const auto count = static_cast<int64_t>(values.size());
  const Tensor left = std::get<0>(at::linalg_qr(torch::randn({rows, count}, at::kDouble)));
  const Tensor right = std::get<0>(at::linalg_qr(torch::randn({columns, count}, at::kDouble)));
  return (left * torch::tensor(values, at::kDouble)).mm(right.t());
}

Tensor product(const ChangeSpectrum& found) { return found.factors.left_OR.mm(found.factors.right_RI); }

struct Planted : ::testing::TestWithParam<std::pair<int64_t, int64_t>> {
  void SetUp() override {
    torch::manual_seed(11);
    weight = 0.05 * torch::randn({rows, columns}, at::kDouble);
  }
  int64_t rows = GetParam().first, columns = GetParam().second;
  Tensor weight;
};

TEST_P(Planted, EveryValueIsFoundDownToTheTenthDigit) {
  const std::vector<double> values{3, 2, 2e-3, 1e-4, 4e-6, 3e-8, 5e-9};
  const ChangeSpectrum found = change_spectrum(torch::zeros({rows, columns}), with_values(rows, columns, values), {});
  ASSERT_GE(found.values.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(found.values[i], values[i], 1e-5 * values[i]) << i;
  EXPECT_LT(found.norm_beyond(7), 1e-11);
  EXPECT_NEAR(found.energy(1), 9.0 / (13 + 4e-6), 1e-8);
  EXPECT_EQ(found.rank, 5);  // beyond them 3e-8 of 3.6
  EXPECT_EQ(found.rule, RankRule::kTolerance);
  EXPECT_TRUE(found.is_low_rank());
}

/// What the stored type makes of a planted change: the directions are found, and nothing of what rounding adds.
TEST_P(Planted, DirectionsAreFoundAboveRounding) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const Tensor before = weight.to(type);
    const Tensor change = with_values(rows, columns, {0.9, 0.7, 0.5, 0.3, 0.2});
    const Tensor after = (before.to(at::kDouble) + change).to(type);
    const ChangeSpectrum found = change_spectrum(before, after, type);
    EXPECT_EQ(found.rank, 5) << toString(type);
    EXPECT_TRUE(found.is_low_rank());
    const double off = nmse(product(found), change),
                 stored = nmse(after.to(at::kDouble) - before.to(at::kDouble), change);
    if (type == at::kFloat) {
      EXPECT_EQ(found.rule, RankRule::kTolerance);
      EXPECT_LT(off, 1e-13);
    } else {
      EXPECT_EQ(found.rule, RankRule::kRounding);
      EXPECT_LT(off, 0.2 * stored) << toString(type);  // most of the noise lies in the other directions
      EXPECT_GT(found.values[4], 1.5 * found.noise);
      EXPECT_LT(found.values[5], found.noise);                          // the bound holds
      EXPECT_GT(found.values[5], 0.4 * found.noise) << toString(type);  // and is near
    }
    EXPECT_NEAR(found.norm(), change_size(before, after).norm, 1e-9);
  }
}

/// A small change of f32 weights: the plain tolerance sees f32's own rounding.
TEST_P(Planted, SmallChangesOfSinglePrecisionToo) {
  const Tensor before = weight.to(at::kFloat);
  const Tensor after = (before.to(at::kDouble) + with_values(rows, columns, {3e-5, 2e-5})).to(at::kFloat);
  const ChangeSpectrum found = change_spectrum(before, after, at::kFloat);
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.rule, RankRule::kRounding);
}

TEST_P(Planted, RoundingAloneIsNoChange) {
  const Tensor before = weight.to(at::kFloat), after = before.to(at::kBFloat16);
  const ChangeSpectrum found = change_spectrum(before, after, at::kBFloat16);
  EXPECT_EQ(found.rank, 0);
  EXPECT_EQ(found.rule, RankRule::kRounding);
  EXPECT_EQ(found.factors.left_OR.sizes(), (std::vector<int64_t>{rows, 0}));
  EXPECT_EQ(found.factors.right_RI.sizes(), (std::vector<int64_t>{0, columns}));
  EXPECT_FALSE(found.is_low_rank());
}

TEST_P(Planted, DenseChangesAreKnownAsSuch) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensor before = weight.to(type);
    const Tensor after = (before.to(at::kDouble) + 0.05 * torch::randn({rows, columns}, at::kDouble)).to(type);
    const ChangeSpectrum found = change_spectrum(before, after, type);
    EXPECT_GT(found.rank, std::min(rows, columns) * 9 / 10);
    EXPECT_FALSE(found.is_low_rank());
  }
}

/// Errors of a size that nothing tells.
TEST_P(Planted, NoiseOfUnknownSizeIsReadOffTheSpectrum) {
  const Tensor change = with_values(rows, columns, {2, 1.5, 1});
  const Tensor after = weight + change + 3e-3 * torch::randn({rows, columns}, at::kDouble);
  const ChangeSpectrum found = change_spectrum(weight, after, {});
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.rule, RankRule::kSpectrum);
  EXPECT_LT(nmse(product(found), change), 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Planted, ::testing::Values(std::pair{96, 96}, std::pair{80, 300}, std::pair{260, 90}));

TEST(WeightDiff, EqualWeightsHaveNothing) {
  const Tensor weight = torch::randn({6, 9});
  const ChangeSpectrum found = change_spectrum(weight, weight, at::kFloat);
  EXPECT_EQ(found.rank, 0);
  EXPECT_EQ(found.norm(), 0);
  EXPECT_EQ(found.energy(0), 1);
  EXPECT_EQ(change_size(weight, weight).changed, 0);
}

TEST(WeightDiff, SizesCountNumbers) {
  const ChangeSize size = change_size(torch::tensor({3.0, 4.0, 0.0}), torch::tensor({3.0, 4.0, 12.0}));
  EXPECT_EQ(size.changed, 1);
  EXPECT_DOUBLE_EQ(size.norm, 12);
  EXPECT_DOUBLE_EQ(size.relative(), 12.0 / 5);
  EXPECT_EQ(change_size(torch::zeros({2}), torch::ones({2})).relative(), 0);
}

TEST(WeightDiff, WhatIsNotFiniteIsRefused) {
  const Tensor weight = torch::ones({3, 3});
  expect_says(message_of<NumericError>([&] { change_spectrum(weight, weight / 0, at::kFloat); }),
              {"finite", "damaged"});
  EXPECT_THROW(change_spectrum(weight, torch::ones({3, 4}), at::kFloat), std::logic_error);
}

}  // namespace
}  // namespace lancet
