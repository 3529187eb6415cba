#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace lancet::testing;

/// Writes beyond `bytes` in any file fail with EFBIG, the first of them short, while this lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST(SafetensorsWriter, WritesTheBytesThatTheFormatDescribes) {
  const TempDir dir;
  const std::string data = "12345678";
  const std::vector<TensorSource> tensors{{"w", DType::kF32, {2, 1}, bytes_of(data)}};
  write_safetensors(dir / "f.safetensors", tensors, {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  std::string padded = header;
  while (padded.size() % 8 != 0) padded += ' ';
  EXPECT_EQ(read_bytes(dir / "f.safetensors"), safetensors_bytes(padded, data));
}

TEST(SafetensorsWriter, BeginsItsDataAlignedForEveryLengthOfHeader) {
  const TempDir dir;
  for (size_t length = 1; length <= 16; ++length) {
    const std::vector<TensorSource> tensors{{std::string(length, 'n'), DType::kU8, {1}, bytes_of("x")}};
    write_safetensors(dir / "f", tensors, {});
    const auto reader = SafetensorsReader::open(dir / "f");
    EXPECT_EQ(reader.tensors().front().begin % 8, 0U) << length;
    EXPECT_EQ(text_of(reader.view(tensors[0].name).bytes), "x");
  }
}

TEST(SafetensorsWriter, RoundTripsEveryDtypeInTheOrderGiven) {
  const TempDir dir;
  std::vector<std::string> data;
  std::vector<TensorSource> tensors;
  for (int dtype = static_cast<int>(DType::kBool); dtype <= static_cast<int>(DType::kF64); ++dtype) {
    const auto type = static_cast<DType>(dtype);
    std::string bytes;
    for (int64_t i = 0; i < 6 * bytes_per_element(type); ++i) bytes += static_cast<char>(37 * i + dtype);
    data.push_back(bytes);
  }
  for (size_t i = data.size(); i-- > 0;)
    tensors.push_back({"tensor " + std::to_string(i), static_cast<DType>(i), {2, 3}, bytes_of(data[i])});
  tensors.push_back({"empty", DType::kF32, {0, 7}, {}});
  tensors.push_back({"scalar \"\xc3\xa4\"\n", DType::kI8, {}, bytes_of("s")});
  const Metadata metadata{{"format", "pt"}, {"note", "line\n\"quoted\" \xe2\x82\xac"}};
  write_safetensors(dir / "f", tensors, metadata);

  const auto reader = SafetensorsReader::open(dir / "f");
  EXPECT_EQ(reader.metadata(), metadata);
  ASSERT_EQ(reader.tensors().size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    SCOPED_TRACE(tensors[i].name);
    const TensorView view = reader.view(tensors[i].name);
    EXPECT_EQ(view.dtype, tensors[i].dtype);
    EXPECT_EQ(view.shape, tensors[i].shape);
    EXPECT_EQ(text_of(view.bytes), text_of(tensors[i].bytes));
    if (!view.bytes.empty()) {
      EXPECT_EQ(reader.tensors()[i].name, tensors[i].name);
    }
  }
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"f"});
}

TEST(SafetensorsWriter, ReplacesAnExistingFileAsAWhole) {
  const TempDir dir;
  write_bytes(dir / "f", std::string(10'000, 'o'));
  const std::vector<TensorSource> tensors{{"w", DType::kU8, {1}, bytes_of("x")}};
  write_safetensors(dir / "f", tensors, {});
  EXPECT_EQ(text_of(SafetensorsReader::open(dir / "f").view("w").bytes), "x");
}

TEST(SafetensorsWriter, RefusesSourcesThatTheReaderWouldRefuse) {
  const TempDir dir;
  const auto refused = [&](std::vector<TensorSource> tensors) {
    return message_of<CheckpointError>([&] { write_safetensors(dir / "f", tensors, {}); });
  };
  const std::string place = (dir / "f").string();
  expect_says(refused({{"w", DType::kU8, {1}, bytes_of("x")}, {"w", DType::kU8, {1}, bytes_of("y")}}),
              {place, "'w'", "twice"});
  expect_says(refused({{"w", DType::kF32, {2}, bytes_of("1234")}}), {place, "'w'", "expected 8 bytes", "got 4 bytes"});
  expect_says(refused({{"w", DType::kF32, {-1}, {}}}), {place, "'w'", "[-1]"});
  expect_says(refused({{"__metadata__", DType::kU8, {1}, bytes_of("x")}}), {place, "reserved"});
  expect_says(refused({{"\xff", DType::kU8, {1}, bytes_of("x")}}), {place, "UTF-8"});
  EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(SafetensorsWriter, LeavesTheOldFileAndNothingElseWhenTheDiskRefuses) {
  const TempDir dir;
  write_bytes(dir / "f", "old");
  const std::string data(100'000, 'x');
  const std::vector<TensorSource> tensors{{"w", DType::kU8, {100'000}, bytes_of(data)}};
  std::string message;
  std::string text_message;
  {
    const FileSizeLimit limit(20'000);
    message = message_of<CheckpointError>([&] { write_safetensors(dir / "f", tensors, {}); });
    text_message = message_of<CheckpointError>([&] { write_text_file(dir / "f", data); });
  }
  expect_says(message, {(dir / "f").string(), "cannot write", "File too large"});
  expect_says(text_message, {(dir / "f").string(), "cannot write", "File too large"});
  EXPECT_EQ(read_bytes(dir / "f"), "old");
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"f"});
}

TEST(SafetensorsWriter, SaysWhereWhenTheFolderIsAbsentOrReadOnly) {
  const TempDir dir;
  const std::vector<TensorSource> tensors{{"w", DType::kU8, {1}, bytes_of("x")}};
  expect_says(message_of<CheckpointError>([&] { write_safetensors(dir / "no" / "f", tensors, {}); }),
              {(dir / "no" / "f").string(), "cannot create", "No such file"});
  if (::geteuid() == 0) GTEST_SKIP() << "root may write to read-only folders";
  std::filesystem::permissions(dir.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  expect_says(message_of<CheckpointError>([&] { write_safetensors(dir / "f", tensors, {}); }),
              {"Permission denied", "permissions"});
  std::filesystem::permissions(dir.path(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace lancet
