#include "cumulative_sums.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace lancet {
namespace {

/// Sums of whole numbers are exact in f64, in any order: products must give torch's own scan, bit by bit. Rows of one
/// block, of blocks that are full and that are not, of two levels and of three.
TEST(CumulativeSums, OfWholeNumbersAreExactByProductsToo) {
  torch::manual_seed(3);
  for (const int64_t n : {1, 63, 64, 65, 128, 4096, 4097, 128256, 262145}) {
    const Tensor values_BN = torch::randint(0, 1000, {2, n}).to(torch::kFloat);
    const Tensor found_BN = cumulative_sums_by_products(values_BN);
    EXPECT_EQ(found_BN.scalar_type(), torch::kDouble);
    EXPECT_TRUE(torch::equal(found_BN, values_BN.cumsum(1, torch::kDouble))) << n;
    EXPECT_TRUE(torch::equal(cumulative_sums(values_BN), found_BN)) << n;
  }
}

TEST(CumulativeSums, OfProbabilitiesAreTorchsToRounding) {
  torch::manual_seed(4);
  const Tensor values_BN = torch::softmax(3 * torch::randn({3, 50'000}), 1);
  const Tensor expected_BN = values_BN.cumsum(1, torch::kDouble);
  EXPECT_TRUE(torch::equal(cumulative_sums(values_BN), expected_BN)) << "of the host, one number after another";
  EXPECT_LE((cumulative_sums_by_products(values_BN) - expected_BN).abs().max().item<double>(), 1e-14);
}

}  // namespace
}  // namespace lancet
