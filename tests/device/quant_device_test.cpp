// Packed matrices on devices: the host's bits, nobody who waits, and no more memory than was said.
#include <gtest/gtest.h>

#include <functional>

#include "fake_tensors.h"
#include "lancet/quant/quantise.h"
#include "support/fake_device.h"

namespace lancet::testing {
namespace {

/// 8 bits of GPTQ with columns in an order of their own.
PackedMatrix gptq_on(at::Device device) {
  PackedSpec spec{.name = "w.weight", .rows = 64, .columns = 256};
  spec.code = {.packing = MatrixPacking::kGptq, .bits = 4, .block = {1, 32}, .zeros = ZeroPoints::kStored};
  spec.parts = {{PartRole::kCodes, "c"}, {PartRole::kZeros, "z"}, {PartRole::kScales, "s"}, {PartRole::kOrder, "g"}};
  const std::vector<Tensor> parts{(numbers({32, 64}) * 1e8).to(at::kInt), (numbers({8, 8}, 2) * 1e8).to(at::kInt),
                                  numbers({8, 64}, 3, at::kHalf), torch::arange(256).remainder(8).to(at::kInt)};
  std::vector<Tensor> there;
  for (const Tensor& part : parts) there.push_back(part.to(device));
  return PackedMatrix::assemble(spec, there);
}

std::vector<std::function<PackedMatrix(at::Device)>> makers() {
  std::vector<std::function<PackedMatrix(at::Device)>> all{gptq_on};
  for (const Quantiser quantiser : {Quantiser::kInt8, Quantiser::kNf4, Quantiser::kFloat8})
    for (const int64_t columns : {256, 270})
      all.emplace_back([quantiser, columns](at::Device device) {
        return quantise(numbers({96, columns}).to(device), quantiser, "w");
      });
  return all;
}

TEST(PackedMatrixOnDevices, HasTheHostsBits) {
  set_fake_device_count(kMaxFakeDevices);
  for (const auto& make : makers()) {
    const PackedMatrix there = make(fake(1)), host = make(kHost), moved = there.to(fake(2));
    EXPECT_EQ(there.device(), fake(1));
    EXPECT_EQ(moved.device(), fake(2));
    EXPECT_EQ(there.bytes(), host.bytes());
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
      EXPECT_TRUE(torch::equal(there.unpack(type).to(kHost), host.unpack(type)));
      EXPECT_TRUE(torch::equal(moved.unpack(type).to(kHost), host.unpack(type)));
    }
  }
}

TEST(PackedMatrixOnDevices, WaitsOnceWhenMadeAndNeverWhenUnpacked) {
  set_fake_device_count(kMaxFakeDevices);
  for (const auto& make : makers()) {
    const FakeWork before = fake_work();
    const PackedMatrix matrix = make(fake(0));
    EXPECT_EQ((fake_work() - before).reads, 1);
    const FakeWork made = fake_work();
    matrix.unpack(at::kBFloat16);
    EXPECT_EQ((fake_work() - made).reads, 0);
    EXPECT_EQ((fake_work() - made).uploads, 0);
  }
}

TEST(PackedMatrixOnDevices, TakesTheMemoryThatItSays) {
  set_fake_device_count(kMaxFakeDevices);
  for (const auto& make : makers()) {
    const int64_t empty = fake_bytes_live(3);
    const PackedMatrix matrix = make(fake(3));
    EXPECT_EQ(fake_bytes_live(3) - empty, matrix.bytes());
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const Tensor out = torch::empty({matrix.rows(), matrix.columns()}, torch::TensorOptions(type).device(fake(3)));
      const int64_t live = fake_bytes_live(3);
      reset_fake_peaks();
      matrix.unpack_rows(0, out);
      EXPECT_LE(fake_bytes_peak(3) - live, matrix.unpack_scratch_bytes()) << at::toString(type);
      EXPECT_EQ(fake_bytes_live(3), live);
    }
  }
}

}  // namespace
}  // namespace lancet::testing
