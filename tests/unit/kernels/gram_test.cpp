#include "lancet/kernels/gram.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <iostream>

#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;

Tensor random_rows(int64_t rows, int64_t size, at::ScalarType type) {
  torch::manual_seed(5);
  return torch::randn({rows, size}, torch::kDouble).add_(0.3).to(type);
}

Tensor mean_of(const Tensor& rows_NF) {
  GramAccumulator gram(rows_NF.size(1), Placement::host());
  gram.add(rows_NF);
  return std::move(gram).take_mean();
}

/// Everything at once, in f64.
Tensor plain_mean(const Tensor& rows_NF) {
  const Tensor precise = rows_NF.to(torch::kDouble);
  return torch::matmul(precise.t(), precise) / static_cast<double>(precise.size(0));
}

struct Case {
  const char* name;
  at::ScalarType type;
  double most_nmse;
};

class GramOfType : public ::testing::TestWithParam<Case> {};

TEST_P(GramOfType, IsTheProductAtAnySize) {
  // one column; less than a panel of columns; exactly one; several and a rest; more rows than a chunk
  for (const auto& [rows, size] :
       std::vector<std::pair<int64_t, int64_t>>{{7, 1}, {50, 33}, {40, 256}, {64, 700}, {9000, 20}}) {
    const Tensor rows_NF = random_rows(rows, size, GetParam().type);
    const Tensor mean = mean_of(rows_NF);
    EXPECT_LE(nmse(mean, plain_mean(rows_NF)), GetParam().most_nmse) << rows << " x " << size;
    EXPECT_TRUE(mean.equal(mean.t())) << rows << " x " << size;
    EXPECT_EQ(mean.scalar_type(), torch::kDouble);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GramOfType,
                         ::testing::Values(Case{"f64", torch::kDouble, 1e-28}, Case{"f32", torch::kFloat, 1e-12},
                                           Case{"bf16", torch::kBFloat16, 1e-12}),
                         [](const auto& row) { return row.param.name; });

TEST(Gram, AddsPartByPart) {
  const Tensor rows_NF = random_rows(120, 530, torch::kDouble);
  GramAccumulator gram(530, Placement::host());
  for (const Tensor& part : rows_NF.split(50)) gram.add(part);
  EXPECT_EQ(gram.rows(), 120);
  EXPECT_LE(nmse(std::move(gram).take_mean(), plain_mean(rows_NF)), 1e-28);
}

TEST(Gram, CountsRowsThatStandForSeveral) {
  const Tensor counts_N = torch::randint(1, 6, {5000}, torch::kLong);  // more rows than a chunk
  for (const at::ScalarType type : {torch::kDouble, torch::kFloat}) {
    const Tensor rows_NF = random_rows(5000, 300, type);
    GramAccumulator gram(300, Placement::host());
    RowCounts counts(counts_N);
    gram.add(rows_NF, counts);
    EXPECT_EQ(gram.rows(), counts_N.sum().item<int64_t>());
    EXPECT_LE(nmse(std::move(gram).take_mean(), plain_mean(rows_NF.repeat_interleave(counts_N, 0))),
              type == torch::kDouble ? 1e-28 : 1e-12);
  }
}

TEST(Gram, CountsRowsOfAnyDeviceOnce) {
  const Tensor counts_N = torch::tensor({1, 3, 1, 1, 2, 9}, torch::kLong);
  RowCounts counts(counts_N);
  EXPECT_EQ(counts.total(6), 17);
  EXPECT_TRUE(counts.on(Placement::host()).equal(counts_N));
  const auto places = [&](int64_t begin, int64_t end) {
    return counts.repeated(begin, end, Placement::host()).places_R;
  };
  const RowCounts::Repeated all = counts.repeated(0, 6, Placement::host());
  EXPECT_TRUE(all.places_R.equal(torch::tensor({1, 4, 5}, torch::kLong)));
  EXPECT_TRUE(all.surplus_R.equal(torch::tensor({2, 1, 8}, torch::kFloat)));
  EXPECT_TRUE(places(2, 5).equal(torch::tensor({4}, torch::kLong)));
  EXPECT_TRUE(places(1, 2).equal(torch::tensor({1}, torch::kLong)));
  EXPECT_FALSE(places(2, 4).defined());
  RowCounts once;
  EXPECT_EQ(once.total(6), 6);
  EXPECT_FALSE(once.on(Placement::host()).defined());
  EXPECT_FALSE(once.repeated(0, 6, Placement::host()).places_R.defined());
}

struct SixteenBitCase {
  const char* name;
  at::ScalarType type;
  int64_t most_count;  ///< 1: every row once
};

class GramOfSixteenBits : public ::testing::TestWithParam<SixteenBitCase> {};

/// What GPUs run, by the host's f32 products of the same numbers: against sums in f64 of the same rows.
TEST_P(GramOfSixteenBits, IsTheSumInF64) {
  const Tensor rows_NF = random_rows(9000, 300, GetParam().type);  // several chunks and panels, with rests
  // most rows once, some often, as openings that documents share
  Tensor counts_N = torch::randint(1, GetParam().most_count + 1, {9000}, torch::kLong);
  counts_N.masked_fill_(torch::rand({9000}) < 0.8, 1);
  RowCounts counts(counts_N);
  GramAccumulator kept(300, Placement::host(), GramProducts::kSixteenBits);
  GramAccumulator widened(300, Placement::host(), GramProducts::kWidened);
  kept.add(rows_NF, counts);
  widened.add(rows_NF, counts);
  EXPECT_EQ(kept.rows(), widened.rows());
  const Tensor exact_NF = rows_NF.to(torch::kDouble);
  const Tensor exact = torch::matmul((exact_NF * counts_N.unsqueeze(1)).t(), exact_NF) / counts_N.sum();
  const double of_kept = nmse(std::move(kept).take_mean(), exact);
  std::cout << "NMSE against f64: " << of_kept << "; of widened rows " << nmse(std::move(widened).take_mean(), exact)
            << "\n";
  EXPECT_LE(of_kept, 4e-13);  // by how a processor's f32 products sum
}

INSTANTIATE_TEST_SUITE_P(Types, GramOfSixteenBits,
                         ::testing::Values(SixteenBitCase{"bf16", torch::kBFloat16, 1},
                                           SixteenBitCase{"bf16_counted", torch::kBFloat16, 300},
                                           SixteenBitCase{"f16", torch::kHalf, 1},
                                           SixteenBitCase{"f16_counted", torch::kHalf, 300}),
                         [](const auto& row) { return row.param.name; });

TEST(Gram, KeepsSixteenBitsOnGpusAlone) {
  EXPECT_EQ(gram_products(Placement::host()), GramProducts::kWidened);
  EXPECT_EQ(gram_products(at::Device(at::kPrivateUse1, 0)), GramProducts::kWidened);
  EXPECT_EQ(gram_products(at::Device(at::kCUDA, 1)), GramProducts::kSixteenBits);
}

/// Rows of other types go the same way whatever the products.
TEST(Gram, OfWiderRowsHasTheSameBitsEitherWay) {
  for (const at::ScalarType type : {torch::kFloat, torch::kDouble}) {
    const Tensor rows_NF = random_rows(200, 60, type);
    GramAccumulator kept(60, Placement::host(), GramProducts::kSixteenBits);
    kept.add(rows_NF);
    EXPECT_TRUE(std::move(kept).take_mean().equal(mean_of(rows_NF)));
  }
}

TEST(Gram, GoesOnFromWhatWasSavedToTheSameBits) {
  const Tensor rows_NF = random_rows(120, 530, torch::kFloat);
  GramAccumulator whole(530, Placement::host()), first(530, Placement::host()), second(530, Placement::host());
  whole.add(rows_NF.slice(0, 0, 70));
  whole.add(rows_NF.slice(0, 70));
  first.add(rows_NF.slice(0, 0, 70));
  second.restore(first.panels(), first.rows());
  second.add(rows_NF.slice(0, 70));
  EXPECT_TRUE(std::move(second).take_mean().equal(std::move(whole).take_mean()));
  EXPECT_THROW(first.restore(torch::zeros({529, 529}, torch::kDouble), 1), std::logic_error);
  EXPECT_THROW(first.restore(torch::zeros({530, 530}, torch::kFloat), 1), std::logic_error);
}

}  // namespace
}  // namespace lancet
