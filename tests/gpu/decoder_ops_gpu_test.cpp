// Norm, gated activation, rotary embedding and token losses on a device against the host's in f64, with gradients: the
// kernels of ours where they run, and torch's operations on the CPU.
#include "lancet/kernels/decoder_ops.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/kernels/linear.h"
#include "lancet/kernels/own_kernels.h"
#include "support/on_device.h"

namespace lancet {
namespace {

using testing::numbers;
using Tensors = std::vector<Tensor>;

class DecoderOpsOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(DecoderOpsOnDevice);

TEST_P(DecoderOpsOnDevice, RunAsOurKernelsOnGpus) {
  if (device() == Placement::host()) GTEST_SKIP() << "the host has loops";
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat, at::kDouble})
    EXPECT_NE(launcher_for(device(), type), nullptr) << at::toString(type);
  EXPECT_EQ(kernels_in_use(), "own");
}

TEST_P(DecoderOpsOnDevice, NormOfASumIsTheHosts) {
  const auto both = [](const Tensors& in) {
    const NormedSum sum = add_rms_norm(in[0], in[1], in[2], 1e-5);
    return torch::cat({sum.sum, sum.normed}, -1);
  };
  for (const int64_t width : {3, 33, 1000, 4096}) {
    const Tensor weight = 1 + 0.1 * numbers({width}, 2);
    const auto ours = [&](const Tensors& in) {  // a weight that wants no gradient, as a model's
      return both({in[0], in[1], weight.to(at::kBFloat16).to(in[0].options())});
    };
    testing::expect_as_on_the_host(device(), ours, {numbers({3, 70, width}, 1), numbers({3, 70, width}, 8)});
  }
}

TEST_P(DecoderOpsOnDevice, TokenLossesAreTheHosts) {
  for (const int64_t width : {2, 33, 1000, 128256}) {
    const Tensor ids = torch::arange(9) * 7919 % width;
    const auto ours = [&](const Tensors& in) {
      return token_losses(in[0], ids.to(in[0].device()), LossExtra::kNone).loss_N.to(in[0].scalar_type());
    };
    testing::expect_as_on_the_host(device(), ours, {3 * numbers({9, width}, 9)});
  }
}

TEST_P(DecoderOpsOnDevice, GreatestIsTheLikeliestTokens) {
  const Tensor logits = (3 * numbers({9, 1000}, 9)).to(device(), at::kBFloat16);
  const TokenLosses losses = token_losses(logits, logits.argmax(1), LossExtra::kGreatest);
  EXPECT_TRUE(torch::equal(losses.greatest_N, -losses.loss_N));
}

TEST_P(DecoderOpsOnDevice, RmsNormIsTheHosts) {
  const Tensor weight = 1 + 0.1 * numbers({4096}, 2);
  for (const int64_t width : {3, 33, 4096})  // a weight that wants no gradient, as a model's
    testing::expect_as_on_the_host(device(),
                                   [&](const Tensors& in) {
                                     return rms_norm(
                                         in[0], weight.narrow(0, 0, width).to(at::kBFloat16).to(in[0].options()), 1e-5);
                                   },
                                   {numbers({3, 70, width}, 1)});
  for (const int64_t width : {48, 1000, 4096})
    testing::expect_as_on_the_host(device(), [](const Tensors& in) { return rms_norm(in[0], in[1], 1e-5); },
                                   {numbers({3, 70, width}, 1), 1 + 0.1 * numbers({width}, 2)});
}

TEST_P(DecoderOpsOnDevice, SiluTimesIsTheHosts) {
  testing::expect_as_on_the_host(device(), [](const Tensors& in) { return silu_times(in[0], in[1]); },
                                 {8 * numbers({5, 7, 1001}, 3), numbers({5, 7, 1001}, 4)});
}

TEST_P(DecoderOpsOnDevice, SiluTimesBearsInfinitiesOfTheExponential) {
  const Tensor gate = torch::tensor({-1e4F, -100.0F, 0.0F, 100.0F, 1e4F}).to(device());
  const Tensor y = silu_times(gate, torch::ones_like(gate)).to(Placement::host());
  EXPECT_TRUE(y.isfinite().all().item<bool>());
  EXPECT_EQ(y[4].item<float>(), 1e4F);
  EXPECT_NEAR(y[0].item<float>(), 0.0F, 1e-30);
}

TEST_P(DecoderOpsOnDevice, RotatePairsIsTheHosts) {
  for (const int64_t dim : {10, 128}) {
    const Tensor angle = numbers({2, 9, 1, dim / 2}, 6);
    const Tensor both = torch::cat({angle, angle}, 3);
    const auto ours = [&](const Tensors& in) {
      // as the type of the device's inputs has them: the reference gets the same tables
      const auto table = [&](const Tensor& x) { return x.to(at::kBFloat16).to(in[0].options()); };
      return rotate_pairs(in[0], table(both.cos()), table(both.sin()));
    };
    testing::expect_as_on_the_host(device(), ours, {numbers({2, 9, 3, dim}, 7)});
  }
}

}  // namespace
}  // namespace lancet
