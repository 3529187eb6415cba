// Products with matrices, of every type and through every block, against those of f64.
#include "lancet/kernels/linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "lancet/kernels/few_rows.h"
#include "lancet/runtime/devices.h"
#include "support/host_tensors.h"
#include "support/kernel_checks.h"

namespace lancet {
namespace {

/// More rows than are widened at a time, a matrix of more numbers than that, and few rows, whose matrix is read by
/// rows.
const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> kShapes{
    {{1300, 96}, {40, 96}}, {{2, 3, 2200}, {2500, 2200}}, {{1, 8}, {8, 8}},       {{5}, {7, 5}},
    {{0, 6}, {3, 6}},       {{4, 9000}, {3, 9000}},       {{3, 577}, {1000, 577}}};
const std::vector<at::ScalarType> kSixteenBits{at::kBFloat16, at::kHalf};

Tensor numbers(const std::vector<int64_t>& sizes, int seed, at::ScalarType type) {
  return testing::random_numbers(sizes, seed).to(type);
}

/// Each number of `found` is that of `exact`, rounded once to its type; sums are of f32.
void expect_rounded(const Tensor& found, const Tensor& exact) {
  ASSERT_EQ(found.sizes(), exact.sizes());
  const double share = found.scalar_type() == at::kBFloat16 ? 0x1p-8 : found.scalar_type() == at::kHalf ? 0x1p-11 : 0;
  const Tensor most = exact.abs() * (share * 1.001) + 1e-4 * (1 + exact.abs().mean());
  EXPECT_TRUE(((found.to(at::kDouble) - exact).abs() <= most).all().item<bool>());
}

TEST(Linear, WidenedProductsAreThoseOfTheNumbers) {
  for (const auto& [x_sizes, weight_sizes] : kShapes) {
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
      const Tensor weight = numbers(weight_sizes, 1, type) / std::sqrt(static_cast<double>(weight_sizes[1]));
      const Tensor x = numbers(x_sizes, 2, type), bias = numbers({weight_sizes[0]}, 3, type);
      const Tensor wide_x = x.to(at::kDouble), wide = weight.to(at::kDouble);
      expect_rounded(widened_linear_of(x, weight), at::linear(wide_x, wide));
      expect_rounded(widened_linear_of(x, weight, bias), at::linear(wide_x, wide, bias.to(at::kDouble)));
      const Tensor y = at::linear(wide_x, wide).to(type);
      expect_rounded(widened_linear_gradient(y, weight), at::matmul(y.to(at::kDouble), wide));
      expect_rounded(linear_gradient(y, weight), at::matmul(y.to(at::kDouble), wide));
    }
  }
}

TEST(Linear, HasTheGradientOfTheProduct) {
  for (const at::ScalarType type : kSixteenBits) {
    const Tensor weight = numbers({40, 24}, 1, type) / 5, bias = numbers({40}, 3, type);
    for (const Tensor& added : {Tensor(), bias}) {
      const Tensor x = numbers({2, 7, 24}, 2, type).requires_grad_();
      const Tensor y = linear_of(x, weight, added), gradient = numbers({2, 7, 40}, 4, type);
      expect_rounded(y.detach(), at::linear(x.detach().to(at::kDouble), weight.to(at::kDouble),
                                            added.defined() ? added.to(at::kDouble) : Tensor()));
      y.backward(gradient);
      expect_rounded(x.grad(), at::matmul(gradient.to(at::kDouble), weight.to(at::kDouble)));
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(linear_of(x, weight, added).equal(y));
    }
  }
}

TEST(Linear, OfAPartOfATensorIsThatOfItsCopy) {
  for (const at::ScalarType type : kSixteenBits) {
    const Tensor all = numbers({12, 20}, 1, type), x = numbers({3, 6}, 2, type);
    const Tensor part = all.narrow(1, 4, 6);  // as an expert's
    EXPECT_TRUE(widened_linear_of(x, part).equal(widened_linear_of(x, part.contiguous())));
  }
}

TEST(Linear, AMatrixThatLearnsHasAGradient) {
  for (const at::ScalarType type : {at::kBFloat16, at::kDouble}) {
    const Tensor weight = numbers({4, 3}, 1, type).requires_grad_(), x = numbers({5, 3}, 2, type);
    linear_of(x, weight).sum().backward();
    expect_rounded(weight.grad(), x.to(at::kDouble).sum(0).expand({4, 3}));
  }
}

/// Matrices of more numbers than a block has and of fewer, heads of many outputs, few rows and more than are widened.
TEST(Linear, WidenedProductsTakeWhatTheySay) {
  const std::vector<LinearSize> sizes{{1300, 96, 40},    {6, 2200, 2500},  {3, 2048, 2048 + 512},
                                      {1030, 640, 7000}, {8, 300'000, 16}, {1, 8, 8}};
  for (const LinearSize& size : sizes) {
    for (const at::ScalarType type : kSixteenBits) {
      const Tensor weight = numbers({size.outputs, size.inputs}, 1, type), bias = numbers({size.outputs}, 3, type);
      const Tensor x = numbers({size.rows, size.inputs}, 2, type), y = numbers({size.rows, size.outputs}, 4, type);
      const auto expect = [&](const char* what, int64_t said, int64_t returned, const std::function<void()>& work) {
        const int64_t taken = testing::host_tensors_peak(work) - returned;
        EXPECT_LE(taken, said) << what << " of " << size.rows << " x " << size.inputs << " x " << size.outputs;
        if (type == at::kBFloat16 && size.rows <= kFewRows) return;  // read row by row, in less than is said
        EXPECT_GE(taken, said / 10 * 9) << what << " of " << size.rows << " x " << size.inputs << " x " << size.outputs;
      };
      expect("product", widened_scratch_bytes(size), 2 * y.numel(), [&] { widened_linear_of(x, weight, bias); });
      expect("gradient", widened_gradient_scratch_bytes(size), 2 * x.numel(),
             [&] { widened_linear_gradient(y, weight); });
    }
  }
}

/// Whichever this processor's are: a product of torch's own takes no copy of the matrix in f32.
TEST(Linear, ProductsAreCountedWhereNumbersAreWidened) {
  const LinearSize size{2 * kFewRows, 1024, 1024};
  for (const at::ScalarType type : kSixteenBits) {
    const Tensor weight = numbers({size.outputs, size.inputs}, 1, type), x = numbers({size.rows, size.inputs}, 2, type);
    const int64_t taken = testing::host_tensors_peak([&] { linear_of(x, weight); });
    const int64_t said = linear_scratch_bytes(size, type, Placement::host());
    EXPECT_EQ(taken > 4 * weight.numel(), said > 0) << type;
    EXPECT_TRUE(said == 0 || said == widened_scratch_bytes(size)) << type;
    EXPECT_EQ(linear_gradient_scratch_bytes(size, type, Placement::host()) > 0, said > 0) << type;
  }
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    EXPECT_EQ(linear_scratch_bytes(size, type, Placement::host()), 0);
}

}  // namespace
}  // namespace lancet
