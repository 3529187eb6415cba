// Products with packed matrices: the bits of products with the same matrices unpacked.
#include "lancet/models/quantised_linear.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_types.h"
#include "lancet/kernels/linear.h"
#include "lancet/quant/gguf_blocks.h"

namespace lancet {
namespace {

constexpr Quantiser kQuantisers[] = {Quantiser::kInt8, Quantiser::kNf4, Quantiser::kFloat8};
constexpr at::ScalarType kProductTypes[] = {at::kFloat, at::kBFloat16, at::kDouble};

PackedMatrix packed(int64_t rows, int64_t columns, Quantiser quantiser = Quantiser::kNf4) {
  return quantise(torch::randn({rows, columns}) / std::sqrt(static_cast<double>(columns)), quantiser, "w");
}

/// Output and gradient are linear_of()'s, with and without a bias, of two and of three dimensions.
void expect_linear(const QuantisedLinear& matrix, const Tensor& weight, at::ScalarType type, const std::string& what) {
  ASSERT_EQ(matrix.sizes(), weight.sizes().vec()) << what;
  EXPECT_TRUE(matrix.unpack(type).equal(weight)) << what;
  for (const Tensor& bias : {Tensor(), torch::randn(weight.size(0)).to(type)}) {
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{7}, {2, 5}}) {
      std::vector<int64_t> sizes = rows;
      sizes.push_back(weight.size(1));
      const Tensor x = torch::randn(sizes).to(type);
      const Tensor ours = x.clone().requires_grad_(), theirs = x.clone().requires_grad_();
      const Tensor y = matrix.linear(ours, bias), expected = linear_of(theirs, weight, bias);
      EXPECT_TRUE(y.equal(expected)) << what;
      const Tensor grad = torch::randn(y.sizes()).to(type);
      y.backward(grad);
      expected.backward(grad);
      EXPECT_TRUE(ours.grad().equal(theirs.grad())) << what;
      const torch::NoGradGuard no_grad;
      const Tensor plain = matrix.linear(ours, bias);
      EXPECT_TRUE(plain.equal(expected) && !plain.requires_grad()) << what;
    }
  }
}

TEST(QuantisedLinear, ComputesWhatItsUnpackedWeightDoes) {
  torch::manual_seed(1);
  for (const Quantiser quantiser : kQuantisers) {
    for (const at::ScalarType type : kProductTypes) {
      const PackedMatrix matrix = packed(24, 64, quantiser);
      expect_linear({{{matrix, 1, 0, 24}}, 0}, matrix.unpack(type), type,
                    cat(quantiser_name(quantiser), " ", at::toString(type)));
    }
  }
}

/// Rows that lie one after the other, as in Phi-3, and head by head, as in GPT-NeoX.
TEST(QuantisedLinear, TakesItsRowsOfAFusedMatrix) {
  torch::manual_seed(2);
  const PackedMatrix matrix = packed(60, 64);
  for (const at::ScalarType type : kProductTypes) {
    const Tensor whole = matrix.unpack(type);
    expect_linear({{{matrix, 1, 16, 40}}, 0}, whole.narrow(0, 16, 40), type, "rows 16-55");
    for (const int64_t begin : {0, 5, 10}) {
      const Tensor by_head = whole.unflatten(0, {4, 15}).narrow(1, begin, 5).flatten(0, 1);
      expect_linear({{{matrix, 4, begin, 20}}, 0}, by_head, type, cat("rows ", begin, " of each head"));
    }
  }
}

TEST(QuantisedLinear, HasTheMatricesOfExperts) {
  torch::manual_seed(3);
  for (const int64_t axis : {0, 1}) {
    for (const at::ScalarType type : kProductTypes) {
      std::vector<QuantisedRows> parts;
      std::vector<Tensor> weights;
      for (int64_t expert = 0; expert < 3; ++expert) {
        parts.push_back({packed(16, 32), 1, 0, 16});
        weights.push_back(parts.back().matrix.unpack(type));
      }
      const QuantisedLinear matrix(parts, axis);
      expect_linear(matrix, torch::cat(weights, axis), type, cat("axis ", axis));
      for (int64_t expert = 0; expert < 3; ++expert) {
        const Tensor& weight = weights[static_cast<size_t>(expert)];
        const Tensor x = torch::randn({5, 32}).to(type);
        const Tensor ours = x.clone().requires_grad_(), theirs = x.clone().requires_grad_();
        const Tensor y = matrix.linear_of_expert(ours, expert), expected = linear_of(theirs, weight);
        EXPECT_TRUE(y.equal(expected)) << expert;
        y.sum().backward();
        expected.sum().backward();
        EXPECT_TRUE(ours.grad().equal(theirs.grad())) << expert;
      }
    }
  }
}

PackedMatrix packed_blocks(int64_t rows, int64_t columns, std::string_view type_name) {
  const GgufType& type = *find_gguf_type(type_name);
  PackedSpec spec{.name = "w.weight", .rows = rows, .columns = columns};
  spec.code = {.packing = MatrixPacking::kGguf, .block_type = type.number};
  spec.parts = {{PartRole::kCodes, "c"}};
  const Tensor weight = torch::randn({rows, columns}) / std::sqrt(static_cast<double>(columns));
  const Tensor codes = encode_blocks(weight, type, "w.weight");
  return PackedMatrix::assemble(spec, std::span(&codes, 1));
}

/// With few rows of activations a matrix of blocks is read row by row: the same numbers, summed in another order.
void expect_few_rows(const QuantisedLinear& matrix, const std::string& what) {
  const torch::NoGradGuard no_grad;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensor weight = matrix.unpack(type).to(at::kDouble);
    for (const Tensor& bias : {Tensor(), torch::randn(weight.size(0)).to(type)}) {
      for (const std::vector<int64_t>& rows : {std::vector<int64_t>{}, {1}, {2, 2}}) {
        std::vector<int64_t> sizes = rows;
        sizes.push_back(weight.size(1));
        const Tensor x = torch::randn(sizes).to(type);
        const Tensor exact = at::linear(x.to(at::kDouble), weight, bias.defined() ? bias.to(at::kDouble) : Tensor());
        const Tensor y = matrix.linear(x, bias);
        ASSERT_EQ(y.scalar_type(), type) << what;
        const double share = type == at::kBFloat16 ? 0x1p-8 : 0;
        EXPECT_TRUE(((y.to(at::kDouble) - exact).abs() <= exact.abs() * share + 1e-5).all().item<bool>()) << what;
      }
    }
  }
}

TEST(QuantisedLinear, ReadsBlocksRowByRowForFewRowsOfActivations) {
  torch::manual_seed(4);
  for (const std::string_view type : {"Q8_0", "Q4_1", "Q4_K"}) {
    const PackedMatrix matrix = packed_blocks(60, 512, type);
    expect_few_rows({{{matrix, 1, 0, 60}}, 0}, cat("whole, ", type));
    expect_few_rows({{{matrix, 1, 16, 40}}, 0}, cat("rows 16-55, ", type));
    expect_few_rows({{{matrix, 4, 5, 20}}, 0}, cat("rows 5-9 of each group, ", type));
    expect_few_rows({{{matrix, 1, 0, 30}, {packed_blocks(60, 512, type), 3, 3, 30}}, 0}, cat("two parts, ", type));
    expect_few_rows({{{matrix, 1, 0, 60}, {packed_blocks(60, 512, type), 1, 0, 60}}, 1}, cat("beside, ", type));
  }
}

/// A gradient that would be lost without a word.
TEST(QuantisedLinear, RefusesABiasThatNeedsAGradient) {
  const QuantisedLinear matrix({{packed(16, 32), 1, 0, 16}}, 0);
  const Tensor bias = torch::zeros(16).requires_grad_();
  EXPECT_THROW(matrix.linear(torch::ones({1, 32}), bias), std::logic_error);
}

TEST(QuantisedLinear, RefusesATypeThatCannotHoldItsNumbers) {
  const QuantisedLinear matrix({{quantise(torch::full({4, 32}, 1e6), Quantiser::kInt8, "large.weight"), 1, 0, 4}}, 0);
  try {
    matrix.linear(torch::ones({1, 32}, at::kHalf), {});
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_NE(std::string(error.what()).find("large.weight"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lancet
