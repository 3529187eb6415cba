// Second moments on a device against the sum in f64.
#include "lancet/kernels/gram.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "support/on_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

class GramOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(GramOnDevice);

/// Rows of 16 bits are exact in f32, and so are their products: what rounds are sums. Those of matrix units cut off
/// where others round: of 4096 rows that may be a few millionths.
constexpr testing::Precision kSums[] = {{at::kDouble, 1e-26}, {at::kFloat, 1e-11}, {at::kBFloat16, 1e-9}};

TEST_P(GramOnDevice, IsTheSumInF64) {
  // less than a panel of columns; several panels and a rest; more rows than a chunk
  for (const auto& [rows, size] : std::vector<std::pair<int64_t, int64_t>>{{50, 33}, {300, 1100}, {9000, 257}}) {
    for (const testing::Precision& precision : kSums) {
      const Tensor rows_NF = (testing::numbers({rows, size}, 5) + 0.3).to(precision.type);
      const Tensor exact_NF = rows_NF.to(at::kDouble);
      GramAccumulator gram(size, device());
      gram.add(rows_NF.to(device()));
      EXPECT_EQ(gram.rows(), rows);
      const Tensor mean = std::move(gram).take_mean();
      EXPECT_EQ(mean.device().type(), device().type());
      EXPECT_TRUE(mean.equal(mean.t()));
      EXPECT_LE(testing::nmse(mean, exact_NF.t().matmul(exact_NF) / static_cast<double>(rows)), precision.most_nmse)
          << at::toString(precision.type) << ", " << rows << " x " << size;
    }
  }
}

TEST_P(GramOnDevice, CountsARowAsOftenAsItStandsFor) {
  for (const testing::Precision& precision : kSums) {
    const Tensor rows_NF = testing::numbers({5000, 300}, 6).to(precision.type);
    const Tensor counts_N = torch::arange(5000, torch::kLong).remainder(7).square().add(1);  // many, few, once
    const Tensor exact_NF = rows_NF.to(at::kDouble);
    GramAccumulator gram(300, device());
    RowCounts counts(counts_N);
    gram.add(rows_NF.to(device()), counts);
    const double total = counts_N.sum().item<double>();
    EXPECT_EQ(gram.rows(), static_cast<int64_t>(total));
    const Tensor expected = (exact_NF * counts_N.to(at::kDouble).unsqueeze(1)).t().matmul(exact_NF) / total;
    EXPECT_LE(testing::nmse(std::move(gram).take_mean(), expected), precision.most_nmse)
        << at::toString(precision.type);
  }
}

/// Rows of 16 bits as they are, and widened: the same sums.
TEST_P(GramOnDevice, OfSixteenBitsIsThatOfWidenedRows) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const Tensor rows_NF = testing::numbers({5000, 520}, 7).to(type).to(device());
    RowCounts counts(torch::arange(5000, torch::kLong).remainder(9).sub(6).clamp(1));  // two in nine more than once
    const auto mean = [&](GramProducts products) {
      GramAccumulator gram(520, device(), products);
      gram.add(rows_NF, counts);
      return std::move(gram).take_mean();
    };
    EXPECT_LE(testing::nmse(mean(GramProducts::kSixteenBits), mean(GramProducts::kWidened)), 1e-9)
        << at::toString(type);
  }
}

}  // namespace
}  // namespace lancet
