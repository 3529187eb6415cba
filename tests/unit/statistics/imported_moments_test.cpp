#include "lancet/statistics/imported_moments.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <zlib.h>

#include <cmath>
#include <limits>

#include "lancet/core/error.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xff);
  return text;
}

struct Array {
  std::string name, descr, shape, data;
};

Array array_of(const std::string& name, const Tensor& tensor) {
  const Tensor rows = tensor.contiguous();
  const std::string descr = rows.scalar_type() == at::kFloat    ? "<f4"
                            : rows.scalar_type() == at::kDouble ? "<f8"
                            : rows.scalar_type() == at::kInt    ? "<i4"
                                                                : "<i8";
  std::string shape = "(";
  for (const int64_t size : rows.sizes()) shape += std::to_string(size) + ",";
  return {name, descr, shape + ")", {static_cast<const char*>(rows.data_ptr()), rows.nbytes()}};
}

/// Writes what numpy.savez does, by hand: stored members.
void write_npz(const std::filesystem::path& path, const std::vector<Array>& arrays) {
  std::string file, directory;
  for (const Array& array : arrays) {
    const std::string header =
        "{'descr': '" + array.descr + "', 'fortran_order': False, 'shape': " + array.shape + ", }\n";
    const std::string bytes = std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + array.data;
    const uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    const std::string name = array.name + ".npy";
    const std::string fields = little(0, 8) + little(crc, 4) + little(bytes.size(), 4) + little(bytes.size(), 4) +
                               little(name.size(), 2) + little(0, 2);
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + fields + little(0, 10) + little(file.size(), 4) + name;
    file += "PK\3\4" + little(20, 2) + fields + name + bytes;
  }
  const std::string end = little(0, 4) + little(arrays.size(), 2) + little(arrays.size(), 2) +
                          little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
  write_bytes(path, file + directory + "PK\5\6" + end);
}

Tensor scalar(int64_t value, at::ScalarType type = at::kLong) { return torch::tensor(value, type); }

/// Sum of k k^T over `count` keys.
Tensor sum_of_keys(int64_t count, int64_t size) {
  torch::manual_seed(7);
  const Tensor keys = torch::randn({count, size}, at::kDouble);
  return keys.t().mm(keys);
}

class MomentsTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const Tensor& sum, const Tensor& count) {
    write_npz(dir_ / "m.npz", {{"mom2.constructor", "<U3", "()", std::string("a\0\0\0b\0\0\0c\0\0\0", 12)},
                               array_of("mom2.count", count),
                               array_of("mom2.mom2", sum),
                               array_of("sample_size", torch::tensor(std::nan(""), at::kDouble))});
    return dir_ / "m.npz";
  }
  /// The message; file and key stand in it.
  std::string refusal(const Tensor& sum, const Tensor& count, int64_t size, const std::string& key) {
    const auto path = write(sum, count);
    const std::string message = message_of<CheckpointError>([&] { import_moments(path, size); });
    expect_says(message, {path.string() + ": ", key, "expected "});
    return message;
  }

  TempDir dir_;
};

TEST_F(MomentsTest, AreTheSumOverTheCount) {
  const Tensor sum = sum_of_keys(60, 12);
  const Tensor exact = (sum + sum.t()) / 2;
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const at::ScalarType count_type : {at::kInt, at::kLong}) {
      const Covariance moments = import_moments(write(exact.to(type), scalar(60, count_type)), 12);
      EXPECT_EQ(moments.tokens, 60);
      EXPECT_EQ(moments.moment_FF.scalar_type(), at::kDouble);
      EXPECT_TRUE(moments.moment_FF.is_cpu());
      EXPECT_TRUE(moments.moment_FF.equal(exact.to(type).to(at::kDouble) / 60));
    }
}

TEST_F(MomentsTest, OfSeveralTilesAreWholeAndSymmetric) {
  constexpr int64_t kSize = 2048 + 2048 + 5;
  torch::manual_seed(8);
  const Tensor keys = torch::randn({64, kSize});
  Tensor sum = keys.t().mm(keys);
  sum = sum.triu() + sum.triu(1).t();
  // Rounding of a large sum: 1e-5 of the diagonal, on one side only.
  const Tensor rounded = sum + torch::rand({kSize, kSize}).triu(1) * 1e-5 * 64;
  const Covariance moments = import_moments(write(rounded, scalar(5000)), kSize);
  EXPECT_TRUE(moments.moment_FF.equal(moments.moment_FF.t()));
  const Tensor wide = rounded.to(at::kDouble);
  EXPECT_TRUE(moments.moment_FF.equal((wide + wide.t()) * 0.5 / 5000.0));
}

TEST_F(MomentsTest, OfDeadNeuronsAreFine) {
  Tensor sum = sum_of_keys(30, 6);
  sum = (sum + sum.t()) / 2;
  sum.select(0, 2).zero_();
  sum.select(1, 2).zero_();
  EXPECT_TRUE(import_moments(write(sum, scalar(30)), 6).moment_FF.equal(sum / 30));
}

TEST_F(MomentsTest, OfAnotherModelAreRefused) {
  expect_says(refusal(torch::eye(6), scalar(100), 8, "mom2.mom2"), {"6 x 6, expected 8 x 8", "another model"});
  expect_says(refusal(torch::ones({6, 8}), scalar(100), 8, "mom2.mom2"), {"[6, 8], expected [8, 8]"});
  expect_says(refusal(torch::ones({64}), scalar(100), 8, "mom2.mom2"), {"[64], expected [8, 8]"});
}

TEST_F(MomentsTest, OfOtherTypesAreRefused) {
  expect_says(refusal(torch::eye(4, at::kLong), scalar(9), 4, "mom2.mom2"), {"<f4 or <f8", "<i8"});
  expect_says(refusal(torch::eye(4), torch::tensor(9.0), 4, "mom2.count"), {"one integer", "<f4 []"});
  expect_says(refusal(torch::eye(4), torch::tensor({9, 9}), 4, "mom2.count"), {"one integer", "[2]"});
  write_npz(dir_ / "h.npz", {{"mom2.mom2", "<f2", "(2, 2)", "12345678"}, array_of("mom2.count", scalar(9))});
  expect_says(message_of<CheckpointError>([&] { import_moments(dir_ / "h.npz", 2); }),
              {"mom2.mom2", "<f4 or <f8", "got <f2"});
}

TEST_F(MomentsTest, WithoutTheKeysAreRefused) {
  write_npz(dir_ / "p.npz", {array_of("P", torch::eye(4)), array_of("mom2.count", scalar(9))});
  expect_says(message_of<CheckpointError>([&] { import_moments(dir_ / "p.npz", 4); }),
              {(dir_ / "p.npz").string(), "'mom2.mom2'", "P, mom2.count"});
  write_npz(dir_ / "q.npz", {array_of("mom2.mom2", torch::eye(4))});
  expect_says(message_of<CheckpointError>([&] { import_moments(dir_ / "q.npz", 4); }), {"'mom2.count'"});
  expect_says(message_of<CheckpointError>([&] { import_moments(dir_ / "absent.npz", 4); }), {"absent.npz", "No such"});
}

TEST_F(MomentsTest, OfTooFewTokensAreRefused) {
  for (const int64_t count : {-5, 0, 7})
    expect_says(refusal(torch::eye(8), scalar(count), 8, "mom2.count"),
                {std::to_string(count) + " tokens", "at least 8", "samples"});
}

TEST_F(MomentsTest, ThatAreNoSecondMomentAreRefused) {
  const Tensor sum = sum_of_keys(40, 6);
  const auto with = [&](int64_t row, int64_t column, double value) {
    Tensor changed = sum.clone();
    changed[row][column] = value;
    return changed;
  };
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double value : {infinity, -infinity, nan})
    for (const auto& [row, column] : {std::pair{4, 1}, {1, 4}})
      expect_says(refusal(with(row, column, value), scalar(40), 6, "mom2.mom2"), {"finite", "compute it again"});
  for (const double value : {infinity, nan, -1.0}) refusal(with(3, 3, value), scalar(40), 6, "mom2.mom2");
  expect_says(refusal(with(3, 3, -1.0), scalar(40), 6, "mom2.mom2"), {"diagonal", "-1"});

  const double just = 1.2e-3 * std::sqrt(sum[4][4].item<double>() * sum[1][1].item<double>());
  expect_says(refusal(with(4, 1, sum[1][4].item<double>() + just), scalar(40), 6, "mom2.mom2"), {"symmetric"});
  EXPECT_NO_THROW(import_moments(write(with(4, 1, sum[1][4].item<double>() + just / 2), scalar(40)), 6));
}

}  // namespace
}  // namespace lancet
