// The text of the GPUs' kernels, run on the host, against torch's operations in f64: rows narrower than a warp, wider
// than a block, and neither; every type; threads in both orders.
#include "support/emulated_kernels.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <bit>
#include <cmath>
#include <random>

#include "lancet/kernels/decoder_ops.h"
#include "lancet/kernels/linear.h"
#include "support/kernel_checks.h"

namespace lancet {
namespace {

using testing::EmulatedKernels;
using testing::random_numbers;
using testing::ThreadOrder;
using Inputs = std::vector<Tensor>;

constexpr int64_t kWidths[] = {1, 3, 31, 33, 257, 4096};
constexpr double kEps = 1e-5;

/// Mean square of the difference, of numbers of the order of 1 or more: some are exactly 0 where a row is one number.
double error_of(const Tensor& got, const Tensor& expected) {
  const Tensor y = expected.to(at::kDouble);
  return ((got.to(at::kDouble) - y).square().sum() / y.square().sum().clamp_min(1.0)).item<double>();
}

/// `ours` through the kernels, `reference` without them.
void expect_kernels(const testing::TensorFunction& ours, const testing::TensorFunction& reference,
                    const Inputs& inputs) {
  for (const ThreadOrder order : {ThreadOrder::kAscending, ThreadOrder::kDescending}) {
    EmulatedKernels kernels(order);
    for (const testing::TypeLimit& type : testing::kKernelTypes) {
      std::vector<Tensor> typed, exact;
      for (const Tensor& input : inputs) {
        typed.push_back(input.to(type.type));
        exact.push_back(typed.back().to(at::kDouble));
      }
      const int64_t before = kernels.launches();
      const std::vector<Tensor> got = [&] {
        const LauncherScope scope(kernels);
        return testing::result_and_gradients(ours, typed);
      }();
      EXPECT_EQ(kernels.launches(), before + 2);  // forward, and back
      const std::vector<Tensor> expected = testing::result_and_gradients(reference, exact);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_LE(error_of(got[i], expected[i]), type.limit)
            << at::toString(type.type) << ", result " << i << " of " << inputs[0].sizes();
    }
  }
}

/// Rounds the table to the precision of `x`'s type.
Tensor as_typed(const Tensor& table, const Tensor& x) { return table.to(at::kHalf).to(x.scalar_type()); }

Tensor norm_formula(const Tensor& x, const Tensor& weight) {
  return weight * x * torch::rsqrt(x.square().mean(-1, true) + kEps);
}

TEST(EmulatedKernels, NormIsTheFormula) {
  for (const int64_t width : kWidths) {
    const Tensor weight = random_numbers({width}, 2).to(at::kBFloat16).to(at::kHalf).to(at::kDouble);
    expect_kernels([&](const Inputs& in) { return rms_norm(in[0], weight.to(in[0].scalar_type()), kEps); },
                   [&](const Inputs& in) { return norm_formula(in[0], weight.to(in[0].scalar_type())); },
                   {random_numbers({2, 3, width}, 1)});
  }
}

TEST(EmulatedKernels, NormOfASumIsTheFormula) {
  for (const int64_t width : kWidths) {
    const Tensor weight = random_numbers({width}, 2).to(at::kBFloat16).to(at::kHalf).to(at::kDouble);
    // both results, so that both gradients flow back; the sum is exact in no type but f64
    const auto joined = [](const Tensor& sum, const Tensor& normed) { return torch::cat({sum, normed}, -1); };
    expect_kernels(
        [&](const Inputs& in) {
          const NormedSum both = add_rms_norm(in[0], in[1], weight.to(in[0].scalar_type()), kEps);
          return joined(both.sum, both.normed);
        },
        [&](const Inputs& in) { return joined(in[0] + in[1], norm_formula(in[0] + in[1], weight)); },
        {random_numbers({2, 3, width}, 1), random_numbers({2, 3, width}, 8)});
  }
}

TEST(EmulatedKernels, NormOfASumHasTheGradientOfWhatIsUsed) {
  EmulatedKernels kernels(ThreadOrder::kAscending);
  const Tensor x = random_numbers({2, 33}, 1), added = random_numbers({2, 33}, 2), weight = random_numbers({33}, 3);
  const auto gradients = [&](const auto& pick) {
    return testing::result_and_gradients(
        [&](const Inputs& in) { return pick(add_rms_norm(in[0], in[1], weight, kEps)); }, {x, added});
  };
  for (const auto& pick :
       {+[](const NormedSum& both) { return both.sum; }, +[](const NormedSum& both) { return both.normed; }}) {
    const std::vector<Tensor> expected = gradients(pick);
    const LauncherScope scope(kernels);
    const std::vector<Tensor> got = gradients(pick);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LE(testing::nmse(got[i], expected[i]), 1e-28) << i;
  }
}

TEST(EmulatedKernels, NormAndGateGiveTheHostsBitsInSixteenBits) {
  const Tensor x = random_numbers({7, 257}, 1).to(at::kBFloat16),
               gate = (4 * random_numbers({7, 257}, 2)).to(at::kBFloat16);
  const Tensor weight = random_numbers({257}, 3).to(at::kBFloat16);
  const Tensor norm = rms_norm(x, weight, kEps), gated = silu_times(gate, x);
  EmulatedKernels kernels(ThreadOrder::kAscending);
  const LauncherScope scope(kernels);
  // sums in another order, exponentials of another library: f32 differs in the last bit, which rarely shows in bf16
  EXPECT_LE((rms_norm(x, weight, kEps) != norm).sum().item<int64_t>(), norm.numel() / 500);
  EXPECT_LE((silu_times(gate, x) != gated).sum().item<int64_t>(), gated.numel() / 500);
}

TEST(EmulatedKernels, GateIsTheFormula) {
  for (const int64_t width : kWidths)
    expect_kernels([](const Inputs& in) { return silu_times(in[0], in[1]); },
                   [](const Inputs& in) { return in[0] * torch::sigmoid(in[0]) * in[1]; },
                   {4 * random_numbers({3, width}, 3), random_numbers({3, width}, 4)});
}

TEST(EmulatedKernels, GateTakesHalvesOfRows) {
  for (const int64_t width : kWidths)
    expect_kernels([](const Inputs& in) { return silu_times_halves(in[0]); },
                   [](const Inputs& in) {
                     const auto halves = in[0].chunk(2, -1);
                     return halves[0] * torch::sigmoid(halves[0]) * halves[1];
                   },
                   {4 * random_numbers({3, 2 * width}, 3)});
}

/// The loops of the host are the reference, whose formula kernels_test.cpp has.
TEST(EmulatedKernels, SplitHeadsAreTheHosts) {
  for (const int64_t dim : {2, 6, 64})
    for (const bool turns : {true, false}) {
      const HeadCounts counts{3, 2, dim};
      const Tensor joined = random_numbers({2, 3, 7 * dim}, 7), angle = random_numbers({2, 3, 1, dim}, 8);
      const auto tables = [&](const Tensor& x) {
        return turns ? RotaryTables{as_typed(angle.cos(), x), as_typed(angle.sin(), x)} : RotaryTables{};
      };
      const auto side_by_side = [&](const Inputs& in) {
        const SplitHeads heads = split_heads(in[0], counts, tables(in[0]));
        return torch::cat({heads.query_BTHC, 2 * heads.key_BTKC, 3 * heads.value_BTKC}, 2);
      };
      expect_kernels(side_by_side, side_by_side, {joined});
    }
}

TEST(EmulatedKernels, RotationIsAComplexProduct) {
  for (const int64_t dim : {2, 6, 62, 66, 128}) {
    const Tensor angle = random_numbers({2, 3, 1, dim / 2}, 6), both = torch::cat({angle, angle}, 3);
    expect_kernels(
        [&](const Inputs& in) { return rotate_pairs(in[0], as_typed(both.cos(), in[0]), as_typed(both.sin(), in[0])); },
        [&](const Inputs& in) {
          const auto halves = in[0].chunk(2, -1);
          const Tensor turn = torch::complex(as_typed(angle.cos(), in[0]), as_typed(angle.sin(), in[0]));
          const Tensor turned = torch::complex(halves[0], halves[1]) * turn;
          return torch::cat({torch::real(turned), torch::imag(turned)}, -1);
        },
        {random_numbers({2, 3, 3, dim}, 7)});
  }
}

TEST(EmulatedKernels, LossIsTheFormula) {
  for (const int64_t width : kWidths) {
    const Tensor ids = torch::arange(5) * 7 % width;
    expect_kernels(
        [&](const Inputs& in) { return token_losses(in[0], ids, LossExtra::kNone).loss_N; },
        [&](const Inputs& in) { return -torch::log_softmax(in[0], -1).gather(1, ids.unsqueeze(1)).squeeze(1); },
        {5 * random_numbers({5, width}, 9)});
  }
}

TEST(EmulatedKernels, LossBearsWhatLogitsCanBe) {
  const float inf = INFINITY;
  const Tensor logits =
      torch::tensor({{3e4F, -3e4F, 0.0F}, {-inf, 2.0F, 1.0F}, {-inf, -inf, -1e30F}, {1.0F, NAN, 0.0F}});
  const Tensor ids = torch::tensor({1, 1, 2, 0}, torch::kLong);
  const TokenLosses expected = token_losses(logits, ids, LossExtra::kGreatest);
  for (const ThreadOrder order : {ThreadOrder::kAscending, ThreadOrder::kDescending}) {
    EmulatedKernels kernels(order);
    const LauncherScope scope(kernels);
    const TokenLosses got = token_losses(logits, ids, LossExtra::kGreatest);
    EXPECT_TRUE(torch::allclose(got.loss_N, expected.loss_N, 1e-6, 1e-6, true)) << got.loss_N;
    EXPECT_TRUE(torch::allclose(got.greatest_N.narrow(0, 0, 3), expected.greatest_N.narrow(0, 0, 3), 1e-6, 1e-6));
    EXPECT_TRUE(std::isnan(got.loss_N[3].item<float>()));
    EXPECT_TRUE(std::isnan(token_losses(logits, ids + 3, LossExtra::kNone).loss_N[0].item<float>()));  // no such id
  }
}

TEST(EmulatedKernels, GreatestIsOfTheLikeliestToken) {
  const Tensor logits = 5 * random_numbers({40, 33}, 10).to(at::kBFloat16), ids = logits.argmax(1);
  EmulatedKernels kernels(ThreadOrder::kAscending);
  const LauncherScope scope(kernels);
  const TokenLosses of_the_likeliest = token_losses(logits, ids, LossExtra::kGreatest);
  EXPECT_TRUE(torch::equal(of_the_likeliest.greatest_N, -of_the_likeliest.loss_N));  // to the bit: none is missed
  const TokenLosses of_others = token_losses(logits, (ids + 1) % 33, LossExtra::kGreatest);
  EXPECT_TRUE((of_others.greatest_N > -of_others.loss_N).all().item<bool>());
}

/// Rows that do not begin where 128 bits may be loaded, though their width would allow it.
TEST(EmulatedKernels, TakePartsOfLongerMemory) {
  const Tensor memory = 2 * random_numbers({1 + 4 * 64}, 11), weight = random_numbers({1 + 64}, 12);
  const auto rows = [](const Tensor& x) { return x.narrow(0, 1, x.size(0) - 1).view({-1, 64}); };
  const auto all = [&](const Tensor& x, const Tensor& w) {
    const Tensor table = rows(w).view({1, 1, 1, 64}).expand({1, 4, 1, 64}).contiguous();
    return torch::stack({rms_norm(x, rows(w)[0], kEps), silu_times(x, x),
                         rotate_pairs(x.view({1, 4, 1, 64}), table, table).view({4, 64})});
  };
  for (const testing::TypeLimit& type : testing::kKernelTypes) {
    const Tensor x = rows(memory.to(type.type)), w = weight.to(type.type);
    ASSERT_NE(reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16, 0U);
    const Tensor expected = all(x.to(at::kDouble), w.to(at::kDouble));
    EmulatedKernels kernels(ThreadOrder::kAscending);
    const LauncherScope scope(kernels);
    EXPECT_LE(error_of(all(x, w), expected), type.limit) << at::toString(type.type);
  }
}

TEST(EmulatedKernels, TakeNothing) {
  EmulatedKernels kernels(ThreadOrder::kAscending);
  const LauncherScope scope(kernels);
  EXPECT_EQ(rms_norm(torch::empty({0, 8}), torch::ones({8}), kEps).numel(), 0);
  EXPECT_EQ(silu_times(torch::empty({0, 8}), torch::empty({0, 8})).numel(), 0);
  EXPECT_EQ(silu_times_halves(torch::empty({0, 8})).numel(), 0);
  EXPECT_EQ(split_heads(torch::empty({1, 0, 16}), {2, 1, 4}, {}).value_BTKC.numel(), 0);
  EXPECT_EQ(rotate_pairs(torch::empty({0, 2, 2, 8}), torch::empty({0, 2, 1, 8}), torch::empty({0, 2, 1, 8})).numel(),
            0);
  EXPECT_EQ(token_losses(torch::empty({0, 8}), torch::empty({0}, torch::kLong), LossExtra::kNone).loss_N.numel(), 0);
  EXPECT_EQ(kernels.launches(), 0);
}

TEST(EmulatedKernels, SixteenBitsAreTorchs) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float f16 = c10::Half(half, c10::Half::from_bits()), bf16 = c10::BFloat16(half, c10::BFloat16::from_bits());
    ASSERT_TRUE(std::isnan(f16) ? std::isnan(testing::kernels_widen_f16(half))
                                : testing::kernels_widen_f16(half) == f16)
        << bits;
    ASSERT_TRUE(std::isnan(bf16) ? std::isnan(testing::kernels_widen_bf16(half))
                                 : testing::kernels_widen_bf16(half) == bf16)
        << bits;
  }
  std::mt19937 generator(7);
  for (int i = 0; i < 2'000'000; ++i) {
    // all bits, and those whose exponents f16 has
    const auto any = static_cast<uint32_t>(generator());
    const float x = std::bit_cast<float>(i % 2 == 0 ? any : (any & 0x8FFFFFFFU) | 0x30000000U);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(c10::Half(testing::kernels_narrow_f16(x), c10::Half::from_bits()))));
      continue;
    }
    ASSERT_EQ(testing::kernels_narrow_f16(x), c10::Half(x).x) << x;
    ASSERT_EQ(testing::kernels_narrow_bf16(x), c10::BFloat16(x).x) << x;
  }
}

}  // namespace
}  // namespace lancet
