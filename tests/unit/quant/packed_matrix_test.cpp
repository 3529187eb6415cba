#include "lancet/quant/packed_matrix.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <random>

#include "lancet/core/error.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

constexpr const char* kWeight = "model.layers.0.mlp.down_proj.weight";

/// A matrix as a checkpoint would have it.
struct Stored {
  PackedSpec spec;
  std::vector<Tensor> tensors;

  void add(PartRole role, const Tensor& tensor) {
    spec.parts.push_back({role, std::string("tensor ") + std::to_string(spec.parts.size())});
    tensors.push_back(tensor.contiguous());
  }
  PackedMatrix matrix() const { return PackedMatrix::assemble(spec, tensors); }
};

Tensor random_words(int64_t rows, int64_t columns) {
  return torch::randint(-(int64_t{1} << 31), int64_t{1} << 31, {rows, columns}, torch::kLong).to(torch::kInt);
}

Tensor scales_like(at::IntArrayRef sizes, at::ScalarType type) { return (torch::rand(sizes) * 0.02 + 0.001).to(type); }

Stored empty_of(int64_t rows, int64_t columns, const MatrixCode& code) {
  Stored stored;
  stored.spec = {.name = kWeight, .rows = rows, .columns = columns, .code = code};
  return stored;
}

Stored gptq(int64_t rows, int64_t columns, int64_t bits = 4) {
  Stored stored = empty_of(rows, columns,
                           {.packing = MatrixPacking::kGptq,
                            .bits = bits,
                            .block = {1, 32},
                            .zeros = ZeroPoints::kStored,
                            .symmetric = false});
  const int64_t groups = columns / 32;
  stored.add(PartRole::kCodes, random_words(columns * bits / 32, rows));
  stored.add(PartRole::kZeros, random_words(groups, rows * bits / 32));
  stored.add(PartRole::kScales, scales_like({groups, rows}, at::kHalf));
  stored.add(PartRole::kOrder, (torch::arange(columns) / 32).floor().to(torch::kInt).index({torch::randperm(columns)}));
  return stored;
}

Stored awq(int64_t rows, int64_t columns) {
  Stored stored = empty_of(rows, columns,
                           {.packing = MatrixPacking::kAwq, .bits = 4, .block = {1, 32}, .zeros = ZeroPoints::kStored});
  stored.add(PartRole::kCodes, random_words(columns, rows / 8));
  stored.add(PartRole::kZeros, random_words(columns / 32, rows / 8));
  stored.add(PartRole::kScales, scales_like({columns / 32, rows}, at::kHalf));
  return stored;
}

Stored float8(int64_t rows, int64_t columns) {
  Stored stored = empty_of(rows, columns, {.packing = MatrixPacking::kFloat8, .block = {48, 64}});
  stored.add(PartRole::kCodes, torch::randint(0, 127, {rows, columns}, torch::kByte).view(at::kFloat8_e4m3fn));
  stored.add(PartRole::kScales, scales_like({(rows + 47) / 48, (columns + 63) / 64}, at::kFloat));
  return stored;
}

const Tensor& nf4_table() {
  static const Tensor table =
      torch::tensor({-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
                     -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
                     0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F,
                     0.7229568362236023F, 1.0F});
  return table;
}

Stored nf4(int64_t rows, int64_t columns, bool nested) {
  Stored stored = empty_of(rows, columns,
                           {.packing = MatrixPacking::kBitsAndBytes4, .bits = 4, .block = {1, 64}, .nested = nested});
  const int64_t blocks = (rows * columns + 63) / 64;
  stored.spec.nested_offset = 0.01;
  stored.add(PartRole::kCodes, torch::randint(0, 256, {rows * columns / 2, 1}, torch::kByte));
  stored.add(PartRole::kTable, nf4_table().clone());
  stored.add(PartRole::kScales,
             nested ? torch::randint(0, 256, {blocks}, torch::kByte) : scales_like({blocks}, at::kFloat));
  if (!nested) return stored;
  stored.add(PartRole::kNestedScales, scales_like({(blocks + 255) / 256}, at::kFloat));
  stored.add(PartRole::kNestedTable, torch::linspace(-1, 1, 256));
  return stored;
}

Stored int8(int64_t rows, int64_t columns) {
  Stored stored = empty_of(rows, columns, {.packing = MatrixPacking::kBitsAndBytes8, .block = {1, 0}});
  stored.add(PartRole::kCodes, torch::randint(-127, 128, {rows, columns}, torch::kChar));
  stored.add(PartRole::kScales, scales_like({rows}, at::kFloat));
  return stored;
}

Stored compressed(int64_t rows, int64_t columns) {
  Stored stored = empty_of(
      rows, columns,
      {.packing = MatrixPacking::kCompressedPacked, .bits = 4, .block = {1, 32}, .zeros = ZeroPoints::kStored});
  stored.add(PartRole::kCodes, random_words(rows, columns / 8));
  stored.add(PartRole::kScales, scales_like({rows, columns / 32}, at::kBFloat16));
  stored.add(PartRole::kZeros, random_words(rows / 8, columns / 32));
  return stored;
}

std::vector<Stored> one_of_each(int64_t rows, int64_t columns) {
  std::vector<Stored> all{gptq(rows, columns),      gptq(rows, columns, 3), gptq(rows, columns, 8),
                          awq(rows, columns),       float8(rows, columns),  nf4(rows, columns, false),
                          nf4(rows, columns, true), int8(rows, columns),    compressed(rows, columns)};
  return all;
}

TEST(PackedMatrix, UnpacksAnyRowsToTheSameBits) {
  torch::manual_seed(5);
  // more than the host takes at a time, with blocks that end neither with rows nor with what is taken at a time
  for (const int64_t columns : {96, 672}) {
    for (const Stored& stored : one_of_each(960, columns)) {
      const PackedMatrix matrix = stored.matrix();
      for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
        const Tensor whole = matrix.unpack(type);
        ASSERT_EQ(whole.sizes(), (std::vector<int64_t>{960, columns}));
        for (const auto& [begin, n] :
             std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 47}, {47, 3}, {333, 600}, {959, 1}, {960, 0}}) {
          const Tensor some = torch::full({n, columns}, 7, whole.options());
          matrix.unpack_rows(begin, some);
          EXPECT_TRUE(torch::equal(some, whole.narrow(0, begin, n))) << begin << " " << n << " " << at::toString(type);
        }
      }
    }
  }
}

/// The number as OCP Microscaling Formats 1.0, 5.3, defines it: -1^sign 2^(exponent - bias) (1 + mantissa / 2).
double float4_of(int code) {
  const int exponent = code >> 1 & 3, mantissa = code & 1;
  const double magnitude = exponent == 0 ? mantissa * 0.5 : std::exp2(exponent - 1) * (1 + mantissa * 0.5);
  return code < 8 ? magnitude : -magnitude;
}

TEST(PackedMatrix, UnpacksEveryCodeOfMxfp4WithEveryExponent) {
  constexpr int64_t kExponents = 253;  // the largest number of larger ones is beyond f32
  Stored stored{{.name = "w.weight", .rows = kExponents, .columns = 32}, {}};
  stored.spec.code = {.packing = MatrixPacking::kMxfp4, .bits = 4, .block = {1, 32}};
  Tensor codes = torch::arange(32).remainder(16), expected = torch::empty({kExponents, 32}, at::kDouble);
  stored.add(PartRole::kCodes, (codes.view({16, 2}).select(1, 0) + codes.view({16, 2}).select(1, 1) * 16)
                                   .to(at::kByte)
                                   .expand({kExponents, 1, 16}));
  stored.add(PartRole::kScales, torch::arange(kExponents).to(at::kByte).view({kExponents, 1}));
  for (int64_t e = 0; e < kExponents; ++e)
    for (int64_t i = 0; i < 32; ++i)
      expected[e][i] = std::ldexp(float4_of(static_cast<int>(i % 16)), static_cast<int>(e) - 127);
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16})
    EXPECT_TRUE(stored.matrix().unpack(type).to(at::kDouble).equal(expected)) << at::toString(type);
  for (const int64_t beyond : {254, 255}) {  // 6 * 2^127, and E8M0's NaN
    stored.tensors[1] = torch::full({kExponents, 1}, beyond, at::kByte);
    EXPECT_THROW(stored.matrix(), CheckpointError) << beyond;
  }
}

TEST(PackedMatrix, UnpacksIntoPartsOfOtherTensors) {
  torch::manual_seed(6);
  for (const Stored& stored : one_of_each(64, 96)) {
    const PackedMatrix matrix = stored.matrix();
    const Tensor whole = matrix.unpack(at::kHalf), table = torch::zeros({65, 97}, whole.options());
    matrix.unpack_rows(
        0, table.narrow(0, 1, 64).narrow(1, 1, 96));  // neither in a row with the last, nor where pairs begin
    EXPECT_TRUE(torch::equal(table.narrow(0, 1, 64).narrow(1, 1, 96), whole));
    EXPECT_EQ(table.narrow(0, 0, 1).abs().max().item<float>(), 0);
    EXPECT_EQ(table.narrow(1, 0, 1).abs().max().item<float>(), 0);
  }
}

TEST(PackedMatrix, KnowsItsSizesAndBounds) {
  torch::manual_seed(7);
  for (const Stored& stored : one_of_each(64, 96)) {
    const PackedMatrix matrix = stored.matrix();
    int64_t stored_bytes = 0;
    for (const Tensor& tensor : stored.tensors) stored_bytes += static_cast<int64_t>(tensor.nbytes());
    EXPECT_EQ(matrix.rows(), 64);
    EXPECT_EQ(matrix.columns(), 96);
    EXPECT_EQ(matrix.device(), Placement::host());
    EXPECT_LE(matrix.bytes(),
              stored_bytes + 2 * 1024 + 64 * 3 + 96 * 4);  // pairs, zero points of a byte, longer places
    EXPECT_EQ(matrix.to(Placement::host()).bytes(), matrix.bytes());
    EXPECT_LE(matrix.unpack(at::kDouble).abs().max().item<double>(), matrix.largest() * (1 + 1e-2));  // rounded to bf16
    EXPECT_EQ(PackedMatrix::scratch_bytes(64, 96, Placement::host()), 12 * 64 * 96);
  }
}

TEST(PackedMatrix, RefusesPlacesThatDoNotFit) {
  const PackedMatrix matrix = int8(8, 16).matrix();
  EXPECT_THROW(matrix.unpack_rows(0, torch::zeros({8, 15})), std::logic_error);
  EXPECT_THROW(matrix.unpack_rows(1, torch::zeros({8, 16})), std::logic_error);
  EXPECT_THROW(matrix.unpack_rows(-1, torch::zeros({1, 16})), std::logic_error);
  EXPECT_THROW(matrix.unpack(at::kInt), std::logic_error);
}

/// One to four bytes of one of the tensors are others.
void damage(Stored& stored, std::mt19937_64& random) {
  Tensor& tensor = stored.tensors[random() % stored.tensors.size()];
  tensor = tensor.clone();
  auto* bytes = static_cast<uint8_t*>(tensor.mutable_data_ptr());
  for (uint64_t n = 1 + random() % 4; n > 0; --n) {
    constexpr uint8_t kExtremes[] = {0, 0x7f, 0x7c, 0x80, 0xff};
    bytes[random() % tensor.nbytes()] = random() % 2 == 0 ? static_cast<uint8_t>(random()) : kExtremes[random() % 5];
  }
}

TEST(PackedMatrix, GivesNumbersOrAnErrorForEveryDamage) {
  constexpr uint64_t kSeed = 20261125;
  std::mt19937_64 random(kSeed);
  torch::manual_seed(8);
  const std::vector<Stored> whole = one_of_each(32, 64);
  int n_refused = 0, n_read = 0;
  for (int i = 0; i < 1800; ++i) {
    Stored stored = whole[static_cast<size_t>(i) % whole.size()];
    damage(stored, random);
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", case " << i);
    try {
      const PackedMatrix matrix = stored.matrix();
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
        try {
          ASSERT_TRUE(matrix.unpack(type).isfinite().all().item<bool>()) << at::toString(type);
        } catch (const NumericError&) {  // numbers beyond the type
        }
      }
      ++n_read;
    } catch (const CheckpointError& error) {
      EXPECT_NE(std::string(error.what()).find("tensor "), std::string::npos) << error.what();
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 100);
  EXPECT_GT(n_read, 500);
}

}  // namespace
}  // namespace lancet
