#include "lancet/kernels/gram.h"

#include <gtest/gtest.h>
#include <torch/types.h>

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
    gram.add(rows_NF, counts_N);
    EXPECT_EQ(gram.rows(), counts_N.sum().item<int64_t>());
    EXPECT_LE(nmse(std::move(gram).take_mean(), plain_mean(rows_NF.repeat_interleave(counts_N, 0))),
              type == torch::kDouble ? 1e-28 : 1e-12);
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
