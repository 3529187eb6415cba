// Packed matrices on devices: the host's bits, nobody who waits, and no more memory than was said.
#include <gtest/gtest.h>

#include <functional>

#include "fake_tensors.h"
#include "lancet/gguf/gguf_types.h"
#include "lancet/quant/gguf_blocks.h"
#include "lancet/quant/quantise.h"
#include "support/fake_device.h"

namespace lancet::testing {
namespace {

/// A matrix as a checkpoint would have it.
struct Stored {
  PackedSpec spec;
  std::vector<Tensor> parts;

  Stored to(at::Device device) const {
    Stored there{spec, {}};
    for (const Tensor& part : parts) there.parts.push_back(part.to(device));
    return there;
  }
  PackedMatrix matrix() const { return PackedMatrix::assemble(spec, parts); }
};

Tensor words(int64_t rows, int64_t columns, uint64_t seed) {
  return (numbers({rows, columns}, seed) * 1e8).to(at::kInt);
}

/// 4 bits with columns in an order of their own.
Stored gptq(int64_t rows, int64_t columns) {
  Stored stored{{.name = "w.weight", .rows = rows, .columns = columns}, {}};
  stored.spec.code = {.packing = MatrixPacking::kGptq, .bits = 4, .block = {1, 32}, .zeros = ZeroPoints::kStored};
  stored.spec.parts = {
      {PartRole::kCodes, "c"}, {PartRole::kZeros, "z"}, {PartRole::kScales, "s"}, {PartRole::kOrder, "g"}};
  stored.parts = {words(columns / 8, rows, 1), words(columns / 32, rows / 8, 2),
                  numbers({columns / 32, rows}, 3, at::kHalf), torch::arange(columns).remainder(8).to(at::kInt)};
  return stored;
}

Stored awq(int64_t rows, int64_t columns) {
  Stored stored = gptq(rows, columns);
  stored.spec.code.packing = MatrixPacking::kAwq;
  stored.spec.parts.pop_back();
  stored.parts.pop_back();
  stored.parts[0] = words(columns, rows / 8, 4);
  return stored;
}

Stored float8(int64_t rows, int64_t columns) {
  Stored stored{{.name = "w.weight", .rows = rows, .columns = columns}, {}};
  stored.spec.code = {.packing = MatrixPacking::kFloat8, .block = {128, 128}};
  stored.spec.parts = {{PartRole::kCodes, "c"}, {PartRole::kScales, "s"}};
  stored.parts = {numbers({rows, columns}).to(at::kFloat8_e4m3fn),
                  numbers({(rows + 127) / 128, (columns + 127) / 128})};
  return stored;
}

/// Blocks of a GGUF file, with scales that are small numbers of f16.
Stored blocks(std::string_view type_name) {
  const GgufType& type = *find_gguf_type(type_name);
  Stored stored{{.name = "w.weight", .rows = 24, .columns = 512}, {}};
  stored.spec.code = {.packing = MatrixPacking::kGguf, .block_type = type.number};
  stored.spec.parts = {{PartRole::kCodes, "c"}};
  const int64_t bytes = 512 / type.block_numbers * type.block_bytes;
  const Tensor weight = numbers({24, 512}, 6) * 0.02;
  stored.parts = {can_encode(type) ? encode_blocks(weight, type, "w.weight")
                                   : words(24, bytes, 7).bitwise_and(0x33).to(at::kByte)};
  EXPECT_EQ(stored.parts.front().size(1), bytes);
  return stored;
}

constexpr std::string_view kDecodedOnDevices[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K",
                                                  "Q3_K", "Q4_K", "Q5_K", "Q6_K", "TQ2_0"};

PackedMatrix gptq_on(at::Device device) { return gptq(64, 256).to(device).matrix(); }

std::vector<std::function<PackedMatrix(at::Device)>> makers() {
  std::vector<std::function<PackedMatrix(at::Device)>> all{gptq_on};
  for (const Quantiser quantiser : {Quantiser::kInt8, Quantiser::kNf4, Quantiser::kFloat8})
    for (const int64_t columns : {256, 270})
      all.emplace_back([quantiser, columns](at::Device device) {
        return quantise(numbers({96, columns}).to(device), quantiser, "w");
      });
  for (const std::string_view type : kDecodedOnDevices)
    all.emplace_back([type](at::Device device) { return blocks(type).to(device).matrix(); });
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

TEST(PackedMatrixOnDevices, HasTheHostsBitsOfBlocksThatTheHostDecodes) {
  set_fake_device_count(kMaxFakeDevices);
  for (const std::string_view type : {"IQ4_NL", "MXFP4", "TQ1_0", "NVFP4", "IQ2_XXS", "IQ1_M"}) {
    const Stored stored = blocks(type);
    EXPECT_TRUE(
        torch::equal(stored.to(fake(1)).matrix().unpack(at::kFloat).to(kHost), stored.matrix().unpack(at::kFloat)))
        << type;
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
      EXPECT_LE(fake_bytes_peak(3) - live, PackedMatrix::scratch_bytes(matrix.rows(), matrix.columns(), fake(3)))
          << at::toString(type);
      EXPECT_EQ(fake_bytes_live(3), live);
    }
  }
}

TEST(PackedMatrixOnDevices, IsAssembledInTheMemoryThatIsSaid) {
  set_fake_device_count(kMaxFakeDevices);
  for (const auto& make : {gptq, awq, float8}) {
    const Stored stored = make(512, 1024).to(fake(4));
    const int64_t live = fake_bytes_live(4);
    reset_fake_peaks();
    const PackedMatrix matrix = stored.matrix();
    int64_t stored_bytes = 0;
    for (const Tensor& part : stored.parts) stored_bytes += static_cast<int64_t>(part.nbytes());
    EXPECT_LE(fake_bytes_peak(4) - live, 2 * stored_bytes);
  }
}

}  // namespace
}  // namespace lancet::testing
