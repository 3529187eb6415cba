#include "lancet/checkpoint/saved_tensor.h"

#include <gtest/gtest.h>

#include <random>

#include "lancet/core/error.h"
#include "support/io_support.h"
#include "support/io_zip_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

std::string text_op(std::string_view text) { return "X" + little(text.size(), 4) + std::string(text); }
std::string int_op(int64_t value) { return "\x8a\x08" + little(static_cast<uint64_t>(value), 8); }

std::string ints_op(const std::vector<int64_t>& values) {
  std::string op = "(";
  for (const int64_t value : values) op += int_op(value);
  return op + "t";
}

/// What torch.save writes for a tensor; what a test makes wrong is set here.
struct Pickle {
  std::vector<int64_t> sizes{2, 3};
  std::vector<int64_t> strides{3, 1};
  int64_t offset = 0;
  int64_t numel = 6;
  std::string storage = "FloatStorage";
  std::string function = "ctorch._utils\n_rebuild_tensor_v2\n";

  std::string text() const {
    return "\x80\x02" + function + "q\1((" + text_op("storage") + "q\2ctorch\n" + storage + "\nq\3" + text_op("0") +
           "q\4" + text_op("cpu") + "q\5" + int_op(numel) + "tq\6Q" + int_op(offset) + ints_op(sizes) + "q\7" +
           ints_op(strides) + "r\1\1\1\1\x89" + "ccollections\nOrderedDict\nq\x0a)Rq\x0btq\x0cRq\x0d.";
  }
};

const std::string kNumbers = "0123456789abcdefghijklmn";  // six of four bytes

class SavedTensorTest : public ::testing::Test {
 protected:
  SavedTensor open(const std::string& bytes) {
    write_bytes(dir_ / "P.pt", bytes);
    return SavedTensor::open(dir_ / "P.pt");
  }
  static std::string archive(const std::string& pickle, const std::string& record = kNumbers,
                             const std::string& order = "little") {
    return zip({{"P/data.pkl", pickle}, {"P/byteorder", order}, {"P/data/0", record}, {"P/version", "3\n"}});
  }
  std::string refusal(const std::string& bytes) {
    const std::string message = message_of<CheckpointError>([&] { open(bytes).check_bytes(); });
    expect_says(message, {(dir_ / "P.pt").string() + ": ", "expected ", ", got ", "; "});
    return message;
  }
  std::string refusal(const Pickle& pickle) { return refusal(archive(pickle.text())); }

  static std::string bytes_of_part(const SavedTensor& tensor, int64_t i) {
    const TensorView part = tensor.part(i);
    std::string bytes(part.bytes.size(), '?');
    part.read(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  TempDir dir_;
};

TEST_F(SavedTensorTest, GivesTheTensorPartByPart) {
  const SavedTensor tensor = open(archive(Pickle{}.text()));
  EXPECT_EQ(tensor.dtype(), DType::kF32);
  EXPECT_EQ(tensor.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(bytes_of_part(tensor, 0), kNumbers.substr(0, 12));
  EXPECT_EQ(bytes_of_part(tensor, 1), kNumbers.substr(12));
  EXPECT_EQ(tensor.part(1).shape, std::vector<int64_t>{3});
  EXPECT_NO_THROW(tensor.check_bytes());
}

TEST_F(SavedTensorTest, MayBeAPartOfItsStorageAndOfOtherTypes) {
  const SavedTensor after = open(archive(Pickle{.sizes = {1, 3}, .strides = {77, 1}, .offset = 2}.text()));
  EXPECT_EQ(bytes_of_part(after, 0), kNumbers.substr(8, 12));
  const SavedTensor doubles =
      open(archive(Pickle{.sizes = {3}, .strides = {1}, .numel = 3, .storage = "DoubleStorage"}.text()));
  EXPECT_EQ(doubles.dtype(), DType::kF64);
  EXPECT_EQ(bytes_of_part(doubles, 2), kNumbers.substr(16));
  // as Python writes short tuples and small numbers
  std::string pickle = Pickle{}.text();
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(pickle.find(from), std::string::npos);
    pickle.replace(pickle.find(from), from.size(), to);
  };
  replace(ints_op({2, 3}), "K\2M\3" + std::string(1, '\0') + "\x86");
  replace(int_op(6), "J\6" + std::string(3, '\0'));
  EXPECT_EQ(bytes_of_part(open(archive(pickle)), 1), kNumbers.substr(12));
}

TEST_F(SavedTensorTest, RefusesWhatLiesBeyondItsRecord) {
  expect_says(refusal(archive(Pickle{}.text(), kNumbers.substr(4))), {"a record of 6 numbers", "20 bytes"});
  expect_says(refusal(Pickle{.numel = int64_t{1} << 62}), {"a record of 4611686018427387904 numbers"});
  expect_says(refusal(Pickle{.offset = 1}), {"within the record's 24 bytes", "24 bytes from number 1"});
  expect_says(refusal(Pickle{.offset = std::numeric_limits<int64_t>::max()}), {"within the record"});
  expect_says(refusal(Pickle{.sizes = {3, 3}}), {"within the record", "36 bytes"});
  expect_says(refusal(Pickle{.strides = {1 << 20, 1}}), {"side by side", "[1048576, 1]", "contiguous"});
  expect_says(refusal(Pickle{.strides = {1, 2}}), {"side by side"});
  expect_says(refusal(Pickle{.strides = {1}}), {"side by side"});
  const int64_t large = int64_t{1} << 40;
  expect_says(refusal(Pickle{.sizes = {large, large}, .strides = {large, 1}}), {"63 bits"});
  expect_says(refusal(Pickle{.sizes = {large, 0, large}, .strides = {0, large, 1}}), {"63 bits"});
  for (const int64_t negative : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    expect_says(refusal(Pickle{.sizes = {2, negative}}), {"one tensor"});
    expect_says(refusal(Pickle{.strides = {negative, 1}}), {"one tensor"});
    expect_says(refusal(Pickle{.offset = negative}), {"one tensor"});
    expect_says(refusal(Pickle{.numel = negative}), {"one tensor"});
  }
  expect_says(refusal(Pickle{.sizes = std::vector<int64_t>(40, 1), .strides = std::vector<int64_t>(40, 1)}),
              {"one tensor"});
}

TEST_F(SavedTensorTest, RefusesEveryOtherPickle) {
  expect_says(refusal(Pickle{.function = "cos\nsystem\n"}), {"one tensor", "torch.save(tensor"});
  expect_says(refusal(Pickle{.function = "cbuiltins\neval\n"}), {"one tensor"});
  expect_says(refusal(Pickle{.storage = "QInt8Storage"}), {"a type", "'QInt8Storage'"});
  const std::string pickle = Pickle{}.text();
  for (size_t length = 0; length < pickle.size(); ++length) refusal(archive(pickle.substr(0, length)));
  refusal(archive(pickle + "."));
  // a million tuples, one in the other
  expect_says(refusal(archive("\x80\x02" + std::string(1'000'000, '(') + std::string(1'000'000, 't') + ".")),
              {"100000 bytes for one tensor"});
  expect_says(refusal(archive("\x80\x02" + std::string(40'000, '(') + std::string(40'000, 't') + ".")), {"one tensor"});
}

TEST_F(SavedTensorTest, RefusesOtherArchives) {
  const std::string pickle = Pickle{}.text();
  expect_says(refusal("no archive, but text that is long enough"), {"torch.save (PyTorch 1.6 or newer)"});
  expect_says(refusal(zip({{"P/data.pkl", pickle}})), {"a record data/0", "none"});
  expect_says(refusal(zip({{"P/data/0", kNumbers}})), {"data.pkl", "none"});
  expect_says(refusal(zip({})), {"data.pkl"});
  expect_says(refusal(archive(pickle, kNumbers, "big")), {"little endian"});
  expect_says(refusal(zip({{"P/data.pkl", pickle}, {.name = "P/data/0", .bytes = kNumbers, .method = 8}})), {"packed"});
  expect_says(refusal(zip({{"P/data.pkl", pickle}, {.name = "P/data/0", .bytes = kNumbers, .crc = 5}})), {"CRC-32 5"});
  // 8 MB of zeros in few bytes
  expect_says(refusal(zip({{"P/data.pkl", std::string(8'000'000, '\0'), 8}})), {"at most 100000 bytes"});
}

TEST_F(SavedTensorTest, ThatIsCutWhileItIsOpenIsAnErrorAndNoSignal) {
  const SavedTensor tensor = open(archive(Pickle{}.text()));
  std::filesystem::resize_file(dir_ / "P.pt", 50);
  expect_says(message_of<CheckpointError>([&] { bytes_of_part(tensor, 1); }), {"got an end"});
  expect_says(message_of<CheckpointError>([&] { tensor.check_bytes(); }), {"got an end"});
}

TEST_F(SavedTensorTest, RefusesOrStaysWithinTheFileForEveryCorruption) {
  constexpr uint64_t kSeed = 20261122;
  std::mt19937_64 random(kSeed);
  const std::string whole = archive(Pickle{}.text());
  int opened = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", case " << i);
    try {
      // half of the damage after the checksum, where the pickle is read
      const SavedTensor tensor =
          open(i % 2 == 0 ? damaged(whole, random) : archive(damaged(Pickle{}.text(), random), kNumbers));
      ++opened;
      const std::vector<int64_t>& shape = tensor.shape();
      for (int64_t part = 0; !shape.empty() && part < std::min<int64_t>(shape.front(), 10); ++part)
        bytes_of_part(tensor, part);
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  EXPECT_GT(opened, 50);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace lancet
