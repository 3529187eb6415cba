#include "lancet/quant/quantise.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"

namespace lancet {
namespace {

constexpr Quantiser kWhileLoading[] = {Quantiser::kInt8, Quantiser::kNf4, Quantiser::kFloat8};

Tensor weight(int64_t rows, int64_t columns) {
  torch::manual_seed(3);
  return torch::randn({rows, columns}) * 0.02;
}

/// The largest distance in units of the row's (nf4: the block's) largest number.
double distance(const Tensor& weight, const Tensor& unpacked, int64_t block) {
  const Tensor apart = (unpacked - weight).abs().view({-1, block}),
               largest = weight.abs().view({-1, block}).amax(1, true);
  return (apart / largest.clamp_min(1e-30)).max().item<double>();
}

TEST(Quantise, StaysWithinHalfAStep) {
  const Tensor w = weight(700, 512);  // more than the host takes at a time
  EXPECT_LE(distance(w, quantise(w, Quantiser::kInt8, "w").unpack(at::kFloat), 512), 0.5 / 127 + 1e-6);
  EXPECT_LE(distance(w, quantise(w, Quantiser::kNf4, "w").unpack(at::kFloat), 64), (1 - 0.6961928) / 2 + 1e-6);
  EXPECT_LE(distance(w, quantise(w, Quantiser::kFloat8, "w").unpack(at::kFloat), 512), 16.0 / 448 + 1e-6);
}

TEST(Quantise, KeepsZerosAndTheLargestNumber) {
  Tensor w = weight(6, 128);
  w[2] = 0;
  for (const Quantiser quantiser : kWhileLoading) {
    const PackedMatrix matrix = quantise(w, quantiser, "w");
    const Tensor unpacked = matrix.unpack(at::kFloat);
    EXPECT_EQ(unpacked[2].abs().max().item<float>(), 0) << quantiser_name(quantiser);
    const float largest = w.abs().max().item<float>();
    EXPECT_NEAR(unpacked.abs().max().item<float>(), largest, largest * 1e-6) << quantiser_name(quantiser);
    EXPECT_NEAR(matrix.largest(), largest, largest * 1e-6);
    EXPECT_EQ(matrix.bytes(), quantised_bytes(quantiser, 6, 128));
  }
}

TEST(Quantise, TakesBlocksThatDoNotEndWithRows) {
  const Tensor w = weight(5, 90);  // 450 numbers: seven blocks and two numbers
  const PackedMatrix matrix = quantise(w, Quantiser::kNf4, "w");
  const Tensor apart = (matrix.unpack(at::kFloat) - w).abs().flatten(), flat = w.abs().flatten();
  for (int64_t begin = 0; begin < 450; begin += 64) {
    const int64_t n = std::min<int64_t>(64, 450 - begin);
    EXPECT_LE(apart.narrow(0, begin, n).max().item<double>(), 0.152 * flat.narrow(0, begin, n).max().item<double>())
        << begin;
  }
  EXPECT_EQ(matrix.bytes(), quantised_bytes(Quantiser::kNf4, 5, 90));
}

TEST(Quantise, OfWhatItMadeGivesTheSame) {
  const Tensor w = weight(20, 128);
  for (const Quantiser quantiser : {Quantiser::kInt8, Quantiser::kNf4}) {
    const Tensor once = quantise(w, quantiser, "w").unpack(at::kFloat);
    EXPECT_LE((quantise(once, quantiser, "w").unpack(at::kFloat) - once).abs().max().item<double>(), 1e-7);
  }
}

TEST(Quantise, RefusesWhatIsNotFinite) {
  for (const Quantiser quantiser : kWhileLoading) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      Tensor w = weight(4, 128);
      w[3][70] = bad;
      try {
        quantise(w, quantiser, "model.x.weight");
        ADD_FAILURE() << quantiser_name(quantiser);
      } catch (const NumericError& error) {
        EXPECT_NE(std::string(error.what()).find("model.x.weight: has weights that are not finite"), std::string::npos);
      }
    }
  }
}

TEST(Quantise, RefusesWhatCannotBePacked) {
  EXPECT_THROW(quantise(weight(4, 7), Quantiser::kNf4, "w"), CheckpointError);
  EXPECT_THROW(quantise(weight(4, 8)[0], Quantiser::kInt8, "w"), CheckpointError);
  EXPECT_NO_THROW(quantise(weight(4, 7), Quantiser::kInt8, "w"));
}

}  // namespace
}  // namespace lancet
