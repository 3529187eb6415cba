#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

constexpr std::string_view kTwoTensors =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I8","shape":[3],"data_offsets":[8,11]}})";

class SafetensorsReaderTest : public ::testing::Test {
 protected:
  std::string refusal(std::string_view header, std::string_view data) {
    return refusal_of_bytes(safetensors_bytes(header, data));
  }
  std::string refusal_of_bytes(std::string_view bytes) {
    write_bytes(path_, bytes);
    const std::string message = message_of<CheckpointError>([&] { SafetensorsReader::open(path_); });
    expect_says(message, {path_.string(), "; "});
    return message;
  }
  SafetensorsReader accepted(std::string_view header, std::string_view data) {
    write_bytes(path_, safetensors_bytes(header, data));
    return SafetensorsReader::open(path_);
  }

  TempDir dir_;
  std::filesystem::path path_ = dir_ / "odd.safetensors";
};

TEST_F(SafetensorsReaderTest, ReadsWhatTheFormatDescribes) {
  const auto reader = accepted(kTwoTensors, "01234567xyz");
  ASSERT_EQ(reader.tensors().size(), 2U);
  EXPECT_EQ(reader.tensors()[0].name, "a");
  EXPECT_EQ(reader.tensors()[0].begin, 8 + kTwoTensors.size());
  EXPECT_EQ(reader.tensors()[1].end, 8 + kTwoTensors.size() + 11);
  EXPECT_EQ(reader.info("b").dtype, DType::kI8);
  EXPECT_EQ(reader.info("b").shape, std::vector<int64_t>{3});
  EXPECT_EQ(text_of(reader.view("a").bytes), "01234567");
  EXPECT_EQ(text_of(reader.view("b").bytes), "xyz");
  EXPECT_TRUE(reader.contains("a"));
  EXPECT_FALSE(reader.contains("c"));
  EXPECT_TRUE(reader.metadata().empty());
}

TEST_F(SafetensorsReaderTest, OrdersTensorsByTheirBytesNotByTheHeader) {
  const auto reader = accepted(
      R"({"z":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      "ZA");
  EXPECT_EQ(reader.tensors()[0].name, "z");
  EXPECT_EQ(text_of(reader.view("a").bytes), "A");
}

TEST_F(SafetensorsReaderTest, AcceptsScalarsEmptyTensorsMetadataAndPadding) {
  const auto reader = accepted(R"({"__metadata__":{"format":"pt","k":"v"},
    "scalar":{"dtype":"U16","shape":[],"data_offsets":[0,2]},
    "empty":{"dtype":"F64","shape":[4,0],"data_offsets":[2,2]},
    "tail":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},
    "empty_at_end":{"dtype":"F64","shape":[0],"data_offsets":[3,3]}}   )",
                               "ab!");
  EXPECT_EQ(text_of(reader.view("scalar").bytes), "ab");
  EXPECT_TRUE(reader.view("scalar").shape.empty());
  EXPECT_TRUE(reader.view("empty").bytes.empty());
  EXPECT_TRUE(reader.view("empty_at_end").bytes.empty());
  EXPECT_EQ(text_of(reader.view("tail").bytes), "!");
  EXPECT_EQ(reader.metadata(), (Metadata{{"format", "pt"}, {"k", "v"}}));
}

TEST_F(SafetensorsReaderTest, AcceptsAFileWithoutTensors) { EXPECT_TRUE(accepted("{}", "").tensors().empty()); }

// By the square of their number they took a minute.
TEST_F(SafetensorsReaderTest, ReadsManyEmptyTensorsInTimeByTheirNumber) {
  constexpr int kMany = 20'000;
  std::string header = "{";
  for (int i = 0; i < kMany; ++i)
    header += cat(i == 0 ? "" : ",", "\"t", i, R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})");
  const std::clock_t begin = std::clock();
  const SafetensorsReader reader = accepted(header + "}", "");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 20.0);
  EXPECT_EQ(reader.tensors().size(), kMany);
  EXPECT_TRUE(reader.view("t19999").bytes.empty());
}

TEST_F(SafetensorsReaderTest, KeepsTheMappingAliveForItsViews) {
  TensorView view;
  {
    const auto reader = accepted(kTwoTensors, "01234567xyz");
    view = reader.view("b");
  }
  std::filesystem::remove(path_);
  EXPECT_EQ(text_of(view.bytes), "xyz");
}

TEST_F(SafetensorsReaderTest, NamesTheFileOfATensorThatIsAbsent) {
  const auto reader = accepted(kTwoTensors, "01234567xyz");
  expect_says(message_of<CheckpointError>([&] { reader.view("nope"); }), {path_.string(), "'nope'"});
}

TEST_F(SafetensorsReaderTest, RejectsAFileTooShortForALength) {
  expect_says(refusal_of_bytes(""), {"at least 8 bytes", "0 bytes"});
  expect_says(refusal_of_bytes("1234567"), {"at least 8 bytes", "7 bytes", "download it again"});
}

TEST_F(SafetensorsReaderTest, RejectsAHeaderLongerThanTheFile) {
  std::string bytes = safetensors_bytes(kTwoTensors, "");
  bytes.resize(50);
  expect_says(refusal_of_bytes(bytes), {"header of " + std::to_string(kTwoTensors.size()), "50 bytes", "truncated"});
}

TEST_F(SafetensorsReaderTest, RejectsAnAbsurdHeaderLength) {
  expect_says(refusal_of_bytes(std::string(16, '\xff')), {"at most 100000000 bytes", "18446744073709551615"});
}

TEST_F(SafetensorsReaderTest, RejectsAHeaderThatDoesNotBeginWithABrace) {
  expect_says(refusal("", ""), {"begins with '{'", "an empty header"});
  expect_says(refusal(" {}", ""), {"begins with '{'", "' '"});
  expect_says(refusal("[]", ""), {"begins with '{'", "'['"});
}

TEST_F(SafetensorsReaderTest, RejectsTextThatIsNotJson) {
  expect_says(refusal(R"({"a":)", ""), {"header: not valid JSON"});
  expect_says(refusal("{} x", ""), {"header: not valid JSON"});
  expect_says(refusal("{\"a\xff\":1}", ""), {"header: not valid JSON"});
  expect_says(refusal(R"({"a":1e999})", ""), {"header: not valid JSON"});
}

TEST_F(SafetensorsReaderTest, RejectsDeepNestingWithoutRecursing) {
  std::string header = R"({"a":)";
  header += std::string(1'000'000, '[');
  expect_says(refusal(header, ""), {"nested deeper than"});
}

TEST_F(SafetensorsReaderTest, RejectsNamesThatStandTwice) {
  expect_says(
      refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          "12"),
      {"'a'", "twice"});
  // The same name, written in another way.
  expect_says(
      refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "1"),
      {"'a'", "twice"});
  expect_says(refusal(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "1"),
              {"'dtype'", "twice"});
  expect_says(refusal(R"({"__metadata__":{"k":"1","k":"2"}})", ""), {"'k'", "twice"});
}

TEST_F(SafetensorsReaderTest, RejectsUnknownDtypes) {
  expect_says(refusal(R"({"w":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", "1"),
              {"tensor 'w'", "dtype", "\"F4\""});
  expect_says(refusal(R"({"w":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", "1"), {"tensor 'w'", "dtype", "got 7"});
}

TEST_F(SafetensorsReaderTest, RejectsShapesThatAreNotSizes) {
  for (const std::string shape : {"[-1]", "[1.5]", "[\"2\"]", "3", "null", "[18446744073709551615]", "[1e3]", "[[1]]"})
    expect_says(refusal(R"({"w":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,1]}})", "1"),
                {"tensor 'w'", "shape", shape == "[1e3]" ? "1000" : shape});
}

TEST_F(SafetensorsReaderTest, RejectsShapesThatOverflow) {
  for (const std::string shape :
       {"[4294967296, 4294967296]", "[9223372036854775807, 2]", "[2305843009213693952]", "[0, 4294967296, 4294967296]"})
    expect_says(refusal(R"({"w":{"dtype":"F64","shape":)" + shape + R"(,"data_offsets":[0,0]}})", ""),
                {"tensor 'w'", "63 bits", shape});
}

TEST_F(SafetensorsReaderTest, RejectsOffsetsThatAreNotTwoIntegers) {
  for (const std::string offsets : {"[0]", "[0,1,1]", "[-1,0]", "[0,1.0]", "\"0,1\"", "[0,18446744073709551616]"})
    expect_says(refusal(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":)" + offsets + "}}", "1"),
                {"tensor 'w'", "data_offsets to be two integers"});
}

TEST_F(SafetensorsReaderTest, RejectsReversedOffsets) {
  expect_says(refusal(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", "1"),
              {"tensor 'w'", "begin <= end", "[1,0]"});
}

TEST_F(SafetensorsReaderTest, RejectsASizeThatDisagreesWithDtypeAndShape) {
  expect_says(refusal(R"({"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,11]}})", std::string(11, 'x')),
              {"tensor 'w'", "expected 12 bytes for BF16 [2, 3]", "got 11 bytes"});
}

TEST_F(SafetensorsReaderTest, RejectsDataOutsideTheFile) {
  expect_says(refusal(kTwoTensors, "01234567xy"), {"tensor 'b'", "10 bytes after the header", "[8, 11]", "truncated"});
  expect_says(
      refusal(
          R"({"w":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[9223372036854775808,18446744073709551615]}})",
          "1"),
      {"tensor 'w'", "1 bytes after the header"});
}

TEST_F(SafetensorsReaderTest, RejectsOverlappingRanges) {
  expect_says(
      refusal(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
          "1234567"),
      {"tensor 'b'", "where tensor 'a' ends", "offset 3", "overlap"});
  // Two names for the same bytes.
  expect_says(
      refusal(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
          "1234"),
      {"tensor 'b'", "overlap"});
}

TEST_F(SafetensorsReaderTest, RejectsGapsBetweenTensors) {
  expect_says(
      refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
          "1234"),
      {"tensor 'b'", "gap of 2 bytes"});
  expect_says(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"),
              {"tensor 'a'", "gap of 1 bytes"});
}

TEST_F(SafetensorsReaderTest, RejectsBytesAfterTheLastTensor) {
  expect_says(refusal(kTwoTensors, "01234567xyz++"), {"expected 11 bytes of data", "2 bytes belong to no tensor"});
}

TEST_F(SafetensorsReaderTest, RejectsMetadataThatIsNotStrings) {
  expect_says(refusal(R"({"__metadata__":{"step":3}})", ""), {"__metadata__", "'step'", "got 3"});
  expect_says(refusal(R"({"__metadata__":["pt"]})", ""), {"__metadata__", "an object"});
}

TEST_F(SafetensorsReaderTest, RejectsTensorsWithoutTheirFields) {
  expect_says(refusal(R"({"w":{"shape":[1],"data_offsets":[0,1]}})", "1"), {"tensor 'w'", "'dtype'"});
  expect_says(refusal(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", "1"), {"tensor 'w'", "'shape'"});
  expect_says(refusal(R"({"w":{"dtype":"U8","shape":[1]}})", "1"), {"tensor 'w'", "'data_offsets'"});
  expect_says(refusal(R"({"w":5})", ""), {"tensor 'w'", "an object"});
}

TEST_F(SafetensorsReaderTest, RejectsPlacesThatAreNoFiles) {
  const auto refused = [&](const std::filesystem::path& path) {
    return message_of<CheckpointError>([&] { SafetensorsReader::open(path); });
  };
  expect_says(refused(dir_ / "absent"), {(dir_ / "absent").string(), "No such file"});
  expect_says(refused(dir_.path()), {dir_.path().string(), "regular file", "a folder"});
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  expect_says(refused(dir_ / "pipe"), {"regular file", "pipe"});
}

TEST_F(SafetensorsReaderTest, KeepsControlCharactersOfNamesOutOfMessages) {
  const std::string message = refusal(R"({"\u001b[31mred":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", "1");
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

/// One random corruption. Most of them keep the length field true, so that they reach the checks after it.
std::string corrupted(std::mt19937_64& random, std::string_view header, std::string_view data) {
  const auto below = [&](size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random); };
  static const std::vector<std::string> kTokens{"0",
                                                "-1",
                                                "1",
                                                "4",
                                                "8",
                                                "9223372036854775807",
                                                "18446744073709551615",
                                                "{",
                                                "}",
                                                "[",
                                                "]",
                                                ",",
                                                "\"",
                                                "1e9",
                                                "[]",
                                                "{}",
                                                "\\",
                                                "null",
                                                "\"a\"",
                                                "4611686018427387904",
                                                "\xff"};
  std::string text(header);
  std::string bytes(data);
  const size_t changes = 1 + below(2);
  for (size_t i = 0; i < changes; ++i) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(4));
        break;
      case 2:
        text.insert(at, kTokens[below(kTokens.size())]);
        break;
      case 3: {  // one number for another
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos)
          text.replace(digit, std::min(text.find_first_not_of("0123456789", digit), text.size()) - digit,
                       below(2) == 0 ? std::to_string(below(64)) : kTokens[below(7)]);
        break;
      }
      default:
        bytes.resize(below(bytes.size() + 8));
    }
    if (text.empty()) text = "{";
  }
  std::string file = safetensors_bytes(text, bytes);
  if (below(16) == 0) file[below(8)] = static_cast<char>(below(256));
  if (below(16) == 0) file.resize(below(file.size()));
  return file;
}

TEST_F(SafetensorsReaderTest, RefusesOrStaysWithinTheFileForEveryCorruption) {
  constexpr uint64_t kSeed = 20240229;
  constexpr int kCases = 6000;
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("e":{"dtype":"I64","shape":[0,3],"data_offsets":[16,16]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
      R"("s":{"dtype":"U8","shape":[],"data_offsets":[22,23]}})";
  const std::string data = "0123456789abcdef012345!";
  ASSERT_EQ(accepted(header, data).tensors().size(), 4U);

  std::mt19937_64 random(kSeed);
  int refused = 0;
  uint64_t sum = 0;
  for (int i = 0; i < kCases; ++i) {
    const std::string bytes = corrupted(random, header, data);
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", case " << i);
    std::filesystem::remove(path_);  // ext4 flushes a file that is truncated and written again: 4 ms each
    write_bytes(path_, bytes);
    try {
      const auto reader = SafetensorsReader::open(path_);
      for (const TensorInfo& info : reader.tensors()) {
        ASSERT_LE(info.begin, info.end);
        ASSERT_LE(info.end, bytes.size());
        int64_t size_bytes = bytes_per_element(info.dtype);
        for (const int64_t size : info.shape) size_bytes *= size;
        const TensorView view = reader.view(info.name);
        ASSERT_EQ(view.bytes.size(), static_cast<size_t>(size_bytes));
        for (const std::byte byte : view.bytes) sum += std::to_integer<uint64_t>(byte);  // touches every byte
      }
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  EXPECT_GT(sum, 0U);
  // Both outcomes occur, or the corruptions test nothing.
  EXPECT_GT(refused, kCases / 2);
  EXPECT_LT(refused, kCases - kCases / 100);
}

}  // namespace
}  // namespace lancet
