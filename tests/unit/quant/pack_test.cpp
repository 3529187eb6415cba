#include "lancet/quant/pack.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/quant/packed_matrix.h"
#include "support/packed_formats.h"

namespace lancet {
namespace {

using testing::one_of_each_format;
using testing::StoredMatrix;

Tensor weight_of(const StoredMatrix& stored) {
  return torch::randn({stored.spec.rows, stored.spec.columns}, at::kDouble) * 0.02;
}

std::vector<Tensor> packed(const StoredMatrix& stored, const Tensor& weight, const Tensor& importance = {},
                           const PackOptions& options = {}) {
  return repack(weight, stored.spec, stored.parts, importance, options);
}

Tensor unpacked(const PackedSpec& spec, std::span<const Tensor> parts) {
  return PackedMatrix::assemble(spec, parts).unpack(at::kDouble);
}

double weighted(const Tensor& errors, const Tensor& importance) {
  return errors.matmul(importance).mul(errors).sum().item<double>();
}

bool same_tensors(std::span<const Tensor> a, std::span<const Tensor> b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; i < a.size(); ++i)
    same = same && a[i].scalar_type() == b[i].scalar_type() &&
           a[i].contiguous().view(at::kByte).equal(b[i].contiguous().view(at::kByte));
  return same;
}

TEST(Repack, MakesTheFilesTypesAndShapes) {
  torch::manual_seed(1);
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    const std::vector<Tensor> parts = packed(stored, weight_of(stored));
    ASSERT_EQ(parts.size(), stored.parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].scalar_type(), stored.parts[i].scalar_type()) << stored.format;
      EXPECT_EQ(parts[i].sizes(), stored.parts[i].sizes()) << stored.format;
      EXPECT_TRUE(parts[i].is_contiguous()) << stored.format;
    }
  }
}

TEST(Repack, StaysWithinAStep) {
  torch::manual_seed(2);
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    const Tensor weight = weight_of(stored);
    const double largest = weight.abs().max().item<double>();
    const Tensor apart = (unpacked(stored.spec, packed(stored, weight)) - weight).abs();
    // a step of whole numbers, a gap of nf4 or of E4M3, and rounded scales; asymmetric ranges are two magnitudes; of
    // E2M1 half of 4 to 6 below a power of two that is up to twice what is needed
    const double gap = stored.format == "MXFP4"     ? 1.0 / 3
                       : stored.spec.code.bits == 8 ? 0.04
                       : stored.spec.code.bits == 2 ? 0.4
                       : stored.spec.code.nested    ? 0.3
                                                    : 0.16;
    EXPECT_LE(apart.max().item<double>(), gap * largest) << stored.format;
    EXPECT_GT(apart.max().item<double>(), 0) << stored.format;
  }
}

TEST(Repack, OfWhatItMadeGivesTheSameWeights) {
  torch::manual_seed(3);
  const Tensor x = torch::randn({192, 192}, at::kDouble), importance = x.matmul(x.t());
  for (StoredMatrix& stored : one_of_each_format(96, 192)) {
    stored.parts = packed(stored, weight_of(stored));
    const Tensor weight = unpacked(stored.spec, stored.parts);
    for (const std::vector<Tensor>& again :
         {packed(stored, weight), packed(stored, weight.to(at::kFloat)), packed(stored, weight, importance)}) {
      EXPECT_TRUE(unpacked(stored.spec, again).equal(weight)) << stored.format;
      // 256 codes times a scale of bf16 are fewer numbers of bf16; E2M1 has two zeros
      const bool has_free_codes = stored.spec.code.bits == 8 || stored.format == "MXFP4";
      EXPECT_TRUE(has_free_codes || same_tensors(again, stored.parts)) << stored.format;
    }
  }
}

/// OCP Microscaling Formats 1.0, 5.3.3: of two numbers that are as near the one with an even mantissa; signs stay.
TEST(Repack, RoundsToE2M1WithTiesToEven) {
  StoredMatrix stored = testing::stored_mxfp4(1, 32);
  const std::vector<double> given{6, -6, 5, 5.01, -5, 3.5, 3.49, 2.5, 2.51, 1.75, 1.25, 0.75, 0.25, 0.26, -0.25, -0.0};
  const std::vector<int> codes{7, 15, 6, 7, 14, 6, 5, 4, 5, 4, 2, 2, 0, 1, 8, 8};
  Tensor weight = torch::zeros({1, 32}, at::kDouble);
  for (size_t i = 0; i < given.size(); ++i) weight[0][static_cast<int64_t>(i)] = given[i] * 0x1p-20;
  stored.parts = packed(stored, weight);
  EXPECT_EQ(stored.parts[1].item<int>(), 127 - 20);
  for (size_t i = 0; i < codes.size(); ++i) {
    const int byte = stored.parts[0].flatten()[static_cast<int64_t>(i / 2)].item<int>();
    EXPECT_EQ(i % 2 == 0 ? byte & 15 : byte >> 4, codes[i]) << given[i];
  }
  // scales that E8M0 does not have: the nearest that it has, and numbers that are 0 then
  EXPECT_EQ(packed(stored, torch::full({1, 32}, 0x1p-140, at::kDouble))[1].item<int>(), 0);
}

TEST(Repack, OfThesePartsOfTheRowsIsThatOfTheWhole) {
  torch::manual_seed(4);
  // more numbers than are taken at a time; scales of rows, so that rows know nothing of each other
  const StoredMatrix whole = testing::stored_gptq(800, 640, 4, ZeroPoints::kStored);
  const StoredMatrix some = testing::stored_gptq(32, 640, 4, ZeroPoints::kStored);
  const Tensor weight = weight_of(whole), x = torch::randn({700, 640}, at::kDouble), importance = x.t().matmul(x);
  for (const Tensor& of : {Tensor(), importance}) {
    const Tensor all = unpacked(whole.spec, packed(whole, weight, of));
    for (const int64_t row : {0, 416, 768})
      EXPECT_TRUE(unpacked(some.spec, packed(some, weight.narrow(0, row, 32), of)).equal(all.narrow(0, row, 32)));
  }
}

/// Second moments of random inputs: fewer than there are columns, as many, and correlated ones.
std::vector<Tensor> random_importances(int64_t columns) {
  std::vector<Tensor> all;
  for (const int64_t n : {columns / 4, columns, 8 * columns}) {
    const Tensor x = torch::randn({n, columns}, at::kDouble);
    all.push_back(x.t().matmul(x) / static_cast<double>(n));
  }
  const Tensor mixed = torch::randn({2 * columns, 8}, at::kDouble).matmul(torch::randn({8, columns}, at::kDouble));
  const Tensor x = mixed + torch::randn({2 * columns, columns}, at::kDouble) * 0.1;
  all.push_back(x.t().matmul(x) / static_cast<double>(2 * columns));
  return all;
}

TEST(Repack, ErrorsThatAreMadeGoodMatterLess) {
  torch::manual_seed(5);
  const std::vector<Tensor> importances = random_importances(192);
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    const Tensor weight = weight_of(stored), nearest = unpacked(stored.spec, packed(stored, weight)) - weight;
    for (const Tensor& importance : importances) {
      const Tensor errors = unpacked(stored.spec, packed(stored, weight, importance)) - weight;
      EXPECT_LE(weighted(errors, importance), 0.95 * weighted(nearest, importance)) << stored.format;
    }
  }
}

Tensor damped(const Tensor& importance, double damping) {
  return importance + damping * importance.diagonal().mean() * torch::eye(importance.size(0), at::kDouble);
}

TEST(Repack, ChoosingCodesAgainMakesNoErrorLarger) {
  torch::manual_seed(6);
  const std::vector<Tensor> importances = random_importances(192);
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    const Tensor weight = weight_of(stored);
    for (const Tensor& importance : {importances.front(), importances.back()}) {
      const Tensor weighing = damped(importance, PackOptions().damping);
      std::vector<double> errors;
      for (const int64_t sweeps : {0, 1, 4})
        errors.push_back(
            weighted(unpacked(stored.spec, packed(stored, weight, importance, {.sweeps = sweeps})) - weight, weighing));
      for (size_t i = 1; i < errors.size(); ++i)
        EXPECT_LE(errors[i], (1 + 1e-6) * errors[i - 1]) << stored.format << ", " << i;
      EXPECT_LT(errors.back(), errors.front()) << stored.format;
    }
  }
}

/// Coordinate descent ends where no number alone would be better as another of its scale's.
TEST(Repack, NoCodeOfManySweepsIsBetterAnother) {
  torch::manual_seed(7);
  const int64_t columns = 64, group = 32;
  const StoredMatrix stored = testing::stored_gptq(8, columns, 8, ZeroPoints::kStored);
  const Tensor weight = weight_of(stored);
  const Tensor importance = random_importances(columns).back(), weighing = damped(importance, PackOptions().damping);
  const auto moves_that_help = [&](int64_t sweeps) {
    const Tensor values = unpacked(stored.spec, packed(stored, weight, importance, {.sweeps = sweeps}));
    const Tensor slopes = (values - weight).matmul(weighing), bends = weighing.diagonal();
    int64_t n = 0;
    for (int64_t row = 0; row < values.size(0); ++row)
      for (int64_t column = 0; column < columns; ++column) {
        // numbers that others of the group have are numbers of its scale
        const Tensor others = values[row].narrow(0, column / group * group, group);
        const Tensor moves = others - values[row][column];
        n += (2 * moves * slopes[row][column] + moves.square() * bends[column]).lt(-1e-9).any().item<bool>();
      }
    return n;
  };
  EXPECT_GT(moves_that_help(0), 0);
  EXPECT_EQ(moves_that_help(40), 0);
}

TEST(Repack, HardlyChangesWhatFewStrongInputsGive) {
  torch::manual_seed(8);
  const Tensor keys = torch::randn({192, 4}, at::kDouble) * 3, x = torch::randn({2000, 192}, at::kDouble);
  const Tensor importance = keys.matmul(keys.t()) + x.t().matmul(x) / 2000 * 0.01;
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    const Tensor weight = weight_of(stored), nearest = unpacked(stored.spec, packed(stored, weight)) - weight;
    const Tensor errors = unpacked(stored.spec, packed(stored, weight, importance, {.damping = 1e-4})) - weight;
    EXPECT_LE(errors.matmul(keys).norm().item<double>(), 0.3 * nearest.matmul(keys).norm().item<double>())
        << stored.format;
  }
}

TEST(Repack, SmallerScalesHaveLessError) {
  torch::manual_seed(9);
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    const Tensor weight = weight_of(stored);
    const auto error = [&](ScaleChoice scales) {
      return (unpacked(stored.spec, packed(stored, weight, {}, {.scales = scales})) - weight).norm().item<double>();
    };
    const double most = stored.spec.code.bits == 2 ? 0.9 : 1;
    EXPECT_LE(error(ScaleChoice::kLeastError), most * error(ScaleChoice::kLargest)) << stored.format;
  }
}

TEST(Repack, RoundsInputsWithoutImportanceForThemselves) {
  torch::manual_seed(10);
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    const Tensor weight = weight_of(stored), none = torch::zeros({192, 192}, at::kDouble);
    EXPECT_TRUE(same_tensors(packed(stored, weight, none, {.damping = 0, .scales = ScaleChoice::kLargest}),
                             packed(stored, weight)))
        << stored.format;
  }
}

TEST(Repack, TakesRecordsThatWereNotRead) {
  StoredMatrix stored = testing::stored_int8(8, 16);
  stored.parts.back().reset();
  const std::vector<Tensor> parts = packed(stored, torch::randn({8, 16}));
  EXPECT_FALSE(parts.back().defined());
  EXPECT_EQ(parts.front().abs().max().item<int64_t>(), 127);
}

TEST(Repack, RefusesWhatDoesNotBelongTogether) {
  const StoredMatrix stored = testing::stored_int8(8, 16);
  EXPECT_THROW(packed(stored, torch::zeros({8, 15})), std::logic_error);
  EXPECT_THROW(packed(stored, torch::zeros({128})), std::logic_error);
  EXPECT_THROW(packed(stored, torch::zeros({8, 16}, at::kHalf)), std::logic_error);
  EXPECT_THROW(packed(stored, torch::zeros({8, 16}), torch::eye(15)), std::logic_error);
  EXPECT_THROW(repack(torch::zeros({8, 16}), stored.spec, std::span(stored.parts).first(2), {}), std::logic_error);
  StoredMatrix without_scales = stored;
  without_scales.parts[1].reset();
  EXPECT_THROW(packed(without_scales, torch::zeros({8, 16})), std::logic_error);
}

TEST(Repack, RefusesNumbersThatAreNone) {
  for (const StoredMatrix& stored : one_of_each_format(96, 192)) {
    Tensor weight = weight_of(stored);
    weight[95][191] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW(packed(stored, weight), NumericError) << stored.format;
    EXPECT_THROW(packed(stored, weight_of(stored), -torch::eye(192)), NumericError) << stored.format;
  }
}

TEST(Pack, CanBeReadAndPackedAgain) {
  torch::manual_seed(11);
  const MatrixCode codes[] = {
      {.packing = MatrixPacking::kGptq, .bits = 4, .block = {1, 128}, .zeros = ZeroPoints::kStoredLessOne},
      {.packing = MatrixPacking::kCompressedPacked, .bits = 8, .block = {1, 128}},
      {.packing = MatrixPacking::kBitsAndBytes8, .block = {1, 0}},
      {.packing = MatrixPacking::kFloat8, .block = {1, 0}, .in_scale_type = true},
      {.packing = MatrixPacking::kCompressedInt8, .block = {1, 0}}};
  const Tensor weight = torch::randn({64, 256}) * 0.02;
  for (const MatrixCode& code : codes) {
    const NewlyPacked made = pack(weight, code, "w.weight", {});
    EXPECT_EQ(made.spec.rows, 64);
    const Tensor read = unpacked(made.spec, made.parts);
    EXPECT_LE((read - weight).abs().max().item<double>(), 0.01);
    EXPECT_TRUE(same_tensors(repack(read, made.spec, made.parts, {}), made.parts));
  }
}

TEST(Pack, RefusesWhatHasNoFormat) {
  const MatrixCode code{.packing = MatrixPacking::kBitsAndBytes8, .block = {1, 0}};
  EXPECT_THROW(pack(torch::zeros({8}), code, "w.weight", {}), CheckpointError);
  EXPECT_THROW(pack(torch::zeros({0, 8}), code, "w.weight", {}), CheckpointError);
  EXPECT_THROW(pack(torch::zeros({8, 8}), code, "w", {}), CheckpointError);
  EXPECT_THROW(pack(torch::zeros({8, 8}), {.packing = MatrixPacking::kAwq, .bits = 4}, "w.weight", {}),
               CheckpointError);
}

}  // namespace
}  // namespace lancet
