// Packed matrices on a device against the host's, bit by bit.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/quant/quantise.h"
#include "support/on_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

class PackedOnDevice : public testing::OnDevice {};
LANCET_ON_EACH_DEVICE(PackedOnDevice);

constexpr at::ScalarType kFloats[] = {at::kFloat, at::kHalf, at::kBFloat16};

TEST_P(PackedOnDevice, QuantisesAndUnpacksToTheHostsBits) {
  for (const Quantiser quantiser : {Quantiser::kInt8, Quantiser::kNf4, Quantiser::kFloat8}) {
    for (const at::ScalarType stored : kFloats) {
      const Tensor weight = (testing::numbers({300, 1026}, 4) * 0.02).to(stored);
      const PackedMatrix host = quantise(weight, quantiser, "w"), there = quantise(weight.to(device()), quantiser, "w");
      EXPECT_EQ(there.bytes(), host.bytes());
      for (const at::ScalarType type : kFloats) {
        const Tensor expected = host.unpack(type);
        EXPECT_TRUE(there.unpack(type).to(expected.device()).equal(expected))
            << quantiser_name(quantiser) << " of " << at::toString(stored) << " in " << at::toString(type);
        EXPECT_TRUE(host.to(device()).unpack(type).to(expected.device()).equal(expected));
      }
    }
  }
}

/// Columns in an order of their own, zero points, 2 to 8 bits, in the type of the scales.
TEST_P(PackedOnDevice, AssemblesWordsToTheHostsBits) {
  for (const int64_t bits : {2, 3, 4, 8}) {
    PackedSpec spec{.name = "w.weight", .rows = 320, .columns = 512};
    spec.code = {.packing = MatrixPacking::kGptq,
                 .bits = bits,
                 .block = {1, 64},
                 .zeros = ZeroPoints::kStoredLessOne,
                 .symmetric = false};
    spec.parts = {{PartRole::kCodes, "c"}, {PartRole::kZeros, "z"}, {PartRole::kScales, "s"}, {PartRole::kOrder, "g"}};
    const std::vector<Tensor> parts{(testing::numbers({16 * bits, 320}, 1) * 1e8).to(at::kInt),
                                    (testing::numbers({8, 10 * bits}, 2) * 1e8).to(at::kInt),
                                    (testing::numbers({8, 320}, 3) * 0.01).to(at::kHalf),
                                    torch::arange(512).remainder(8).to(at::kInt)};
    std::vector<Tensor> there;
    for (const Tensor& part : parts) there.push_back(part.to(device()));
    const PackedMatrix host = PackedMatrix::assemble(spec, parts), other = PackedMatrix::assemble(spec, there);
    for (const at::ScalarType type : kFloats) {
      const Tensor expected = host.unpack(type);
      EXPECT_TRUE(other.unpack(type).to(expected.device()).equal(expected))
          << bits << " bits in " << at::toString(type);
    }
  }
}

}  // namespace
}  // namespace lancet
