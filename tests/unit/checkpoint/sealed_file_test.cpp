#include "lancet/checkpoint/sealed_file.h"

#include <gtest/gtest.h>

#include <mutex>
#include <random>

#include "lancet/core/error.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

constexpr SealedFormat kFormat{"lancet-test-2"};

class SealedFileTest : public ::testing::Test {
 protected:
  /// Two tensors of equal shape and type, so that they can be taken for each other.
  std::string write() {
    const std::vector<TensorSource> tensors{{"a", DType::kF32, {2, 1}, bytes_of("12345678")},
                                            {"b", DType::kF32, {2, 1}, bytes_of("abcdefgh")}};
    return write_sealed(file_, kFormat, tensors, {{"owner", "me"}});
  }
  /// All tensors' bytes, one after the other.
  std::string read(const SealedFormat& format = kFormat) const {
    const SealedFile file = SealedFile::open(file_, format);
    std::vector<std::string> all;
    for (const TensorInfo& info : file.tensors()) all.emplace_back(info.end - info.begin, '?');
    file.read([&](const SealedFile::Piece& piece) {
      all[piece.tensor].replace(piece.offset, piece.bytes.size(), text_of(piece.bytes));
    });
    std::string joined;
    for (const std::string& one : all) joined += one;
    return joined;
  }
  std::string refusal(const SealedFormat& format = kFormat) const {
    const std::string message = message_of<CheckpointError>([&] { read(format); });
    expect_says(message, {file_.string() + ": "});
    EXPECT_EQ(message.find("download"), std::string::npos) << message;
    return message;
  }
  void replace(const std::string& from, const std::string& to) {
    std::string bytes = read_bytes(file_);
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_bytes(file_, bytes.replace(at, from.size(), to));
  }

  TempDir dir_;
  std::filesystem::path file_ = dir_ / "f.safetensors";
};

TEST_F(SealedFileTest, GivesBackWhatWasWritten) {
  const std::string hash = write();
  EXPECT_EQ(read(), "12345678abcdefgh");
  const SealedFile file = SealedFile::open(file_, kFormat);
  EXPECT_EQ(file.content_hash(), hash);
  EXPECT_EQ(file.fact("owner"), "me");
  EXPECT_EQ(write(), hash);
  expect_says(message_of<CheckpointError>([&] { file.fact("none"); }), {file_.string(), "'none'"});
}

TEST_F(SealedFileTest, IsRefusedWithABitOfAnyByteChanged) {
  write();
  const std::string intact = read_bytes(file_);
  for (size_t at = 0; at < intact.size(); ++at) {
    const size_t bit = at % 8;
    std::string bytes = intact;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    write_bytes(file_, bytes);
    SCOPED_TRACE(::testing::Message() << "bit " << bit << " of byte " << at);
    try {
      EXPECT_EQ(read(), "12345678abcdefgh");
      EXPECT_EQ(intact[at], ' ') << "more than what fills the header up";
    } catch (const CheckpointError&) {
    }
  }
}

TEST_F(SealedFileTest, IsRefusedWithAnotherHeader) {
  const auto with = [&](const std::string& from, const std::string& to) {
    write();
    replace(from, to);
    expect_says(refusal(), {"has not the hash", "damaged"});
  };
  with(R"("b":)", R"("c":)");
  with(R"("F32")", R"("I32")");
  with("[2,1]", "[1,2]");
  with(R"("me")", R"("he")");
}

TEST_F(SealedFileTest, IsRefusedWhenTensorsChangedPlaces) {
  write();
  replace(R"("a":)", R"("x":)");
  replace(R"("b":)", R"("a":)");
  replace(R"("x":)", R"("b":)");
  expect_says(refusal(), {"has not the hash"});
}

TEST_F(SealedFileTest, IsRefusedInAnotherFormatOrWithoutAHash) {
  write();
  expect_says(refusal({"lancet-other-1"}), {"expected format lancet-other-1, got 'lancet-test-2'"});
  replace("lancet-test-2", "lancet-test-1");
  expect_says(refusal(), {"expected format lancet-test-2"});
  const TensorSource tensor{"a", DType::kF32, {1}, bytes_of("1234")};
  write_safetensors(file_, std::span(&tensor, 1), {{"format", "lancet-test-2"}});
  expect_says(refusal(), {"expected 'content_hash'"});
  write_safetensors(file_, std::span(&tensor, 1), {});
  expect_says(refusal(), {"expected 'format'"});
}

TEST_F(SealedFileTest, OfManyPiecesIsReadWholeAndCheckedInEach) {
  std::mt19937_64 random(7);
  std::string data(5'000'000, '\0');
  for (char& byte : data) byte = static_cast<char>(random());
  const std::vector<TensorSource> tensors{{"a", DType::kU8, {3'000'000}, bytes_of(data).first(3'000'000)},
                                          {"empty", DType::kU8, {0}, {}},
                                          {"b", DType::kU8, {2'000'000}, bytes_of(data).last(2'000'000)}};
  write_sealed(file_, kFormat, tensors, {});
  EXPECT_EQ(read(), data);
  const std::string intact = read_bytes(file_);
  const size_t begin = intact.size() - data.size();
  for (const size_t at :
       {size_t{0}, size_t{262'143}, size_t{262'144}, size_t{2'999'999}, size_t{3'000'000}, data.size() - 1}) {
    std::string bytes = intact;
    bytes[begin + at] = static_cast<char>(bytes[begin + at] ^ 0x10);
    write_bytes(file_, bytes);
    expect_says(refusal(), {"has not the hash"});
  }
}

TEST_F(SealedFileTest, ThatIsCutWhileItIsOpenIsAnErrorAndNoSignal) {
  write();
  const SealedFile file = SealedFile::open(file_, kFormat);
  std::filesystem::resize_file(file_, 8);
  expect_says(message_of<CheckpointError>([&] { file.check(); }), {file_.string(), "got an end"});
}

TEST_F(SealedFileTest, IsNeverReadWhenDamaged) {
  constexpr uint64_t kSeed = 20261122;
  std::mt19937_64 random(kSeed);
  write();
  const std::string intact = read_bytes(file_);
  for (int i = 0; i < 1000; ++i) {
    const std::string bytes = damaged(intact, random);
    if (bytes == intact) continue;
    write_bytes(file_, bytes);
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", case " << i);
    try {
      EXPECT_EQ(read(), "12345678abcdefgh");  // white space of the header
    } catch (const CheckpointError&) {
    }
  }
}

TEST(HashOfBytes, IsOfTheBytesAlone) {
  const TempDir dir;
  const std::string data(600'000, 'x');
  write_bytes(dir / "a", data);
  write_bytes(dir / "b", data);
  const auto hash = [&](const char* name) { return hash_of_bytes(*MappedFile::open(dir / name)); };
  EXPECT_EQ(hash("a"), hash("b"));
  write_bytes(dir / "b", data + "x");
  EXPECT_NE(hash("a"), hash("b"));
  write_bytes(dir / "b", data.substr(1) + "y");
  EXPECT_NE(hash("a"), hash("b"));
  write_bytes(dir / "a", "");
  EXPECT_EQ(hash("a").size(), 32u);
}

}  // namespace
}  // namespace lancet
