// Norm, gated activation and rotary embedding on a device against the host's in f64, with gradients.
#include "lancet/kernels/decoder_ops.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "support/on_device.h"

namespace lancet {
namespace {

using testing::numbers;
using Tensors = std::vector<Tensor>;

class DecoderOpsOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(DecoderOpsOnDevice);

TEST_P(DecoderOpsOnDevice, RmsNormIsTheHosts) {
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
