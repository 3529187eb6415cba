// Packed matrices on a device against the host's, bit by bit.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/gguf/gguf_types.h"
#include "lancet/quant/gguf_blocks.h"
#include "lancet/quant/pack.h"
#include "lancet/quant/quantise.h"
#include "support/on_device.h"
#include "support/packed_formats.h"
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

TEST_P(PackedOnDevice, DecodesBlocksOfGgufFilesToTheHostsBits) {
  const Tensor weight = testing::numbers({96, 1024}, 8) * 0.02;
  for (const GgufType& type : gguf_types()) {
    if (type.is_plain() || !can_encode(type)) continue;
    PackedSpec spec{.name = "w.weight", .rows = 96, .columns = 1024, .parts = {{PartRole::kCodes, "c"}}};
    spec.code = {.packing = MatrixPacking::kGguf, .block_type = type.number};
    const std::vector<Tensor> parts{encode_blocks(weight, type, "w.weight")}, there{parts.front().to(device())};
    const PackedMatrix host = PackedMatrix::assemble(spec, parts), other = PackedMatrix::assemble(spec, there);
    for (const at::ScalarType out : kFloats) {
      const Tensor expected = host.unpack(out);
      EXPECT_TRUE(other.unpack(out).to(expected.device()).equal(expected)) << type.name << " in " << at::toString(out);
    }
  }
}

TEST_P(PackedOnDevice, PacksToTheHostsBits) {
  const Tensor weight = (testing::numbers({384, 512}, 5) * 0.02).to(at::kFloat);
  for (const testing::StoredMatrix& stored : testing::one_of_each_format(384, 512)) {
    const std::vector<Tensor> host = repack(weight, stored.spec, stored.parts, {}),
                              there = repack(weight.to(device()), stored.spec, stored.parts_on(device()), {});
    for (size_t i = 0; i < host.size(); ++i)
      EXPECT_TRUE(there[i].to(host[i].device()).flatten().view(at::kByte).equal(host[i].flatten().view(at::kByte)))
          << stored.format << ", part " << i;
  }
}

/// Products of f64 differ in their last bits, and so may a number that lies between two codes, with all after it.
TEST_P(PackedOnDevice, MakesErrorsGoodAsTheHostDoes) {
  const Tensor weight = testing::numbers({384, 512}, 6) * 0.02, inputs = testing::numbers({1024, 512}, 7);
  const Tensor importance = inputs.t().matmul(inputs);
  for (const testing::StoredMatrix& stored : testing::one_of_each_format(384, 512)) {
    const auto unpacked = [&](const std::vector<Tensor>& parts) {
      return PackedMatrix::assemble(stored.spec, parts).unpack(at::kDouble).to(weight.device());
    };
    const auto error = [&](const Tensor& of) { return (of - weight).matmul(importance).mul(of - weight).sum(); };
    const Tensor host = unpacked(repack(weight, stored.spec, stored.parts, importance));
    const Tensor there =
        unpacked(repack(weight.to(device()), stored.spec, stored.parts_on(device()), importance.to(device())));
    EXPECT_LE(host.ne(there).any(1).sum().item<int64_t>(), 4) << stored.format << ": rows that differ";
    EXPECT_NEAR((error(there) / error(host)).item<double>(), 1, 1e-3) << stored.format;
  }
}

}  // namespace
}  // namespace lancet
