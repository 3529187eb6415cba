#include <gtest/gtest.h>

#include <cstring>

#include "lancet/checkpoint/gguf.h"
#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace testing;

/// The file's numbers and texts one after the other, as the format defines them.
struct GgufCursor {
  template <typename Number>
  Number number() {
    Number value{};
    std::memcpy(&value, text.data() + place, sizeof(value));
    place += sizeof(value);
    return value;
  }
  std::string string() {
    const auto size = number<uint64_t>();
    place += size;
    return text.substr(place - size, size);
  }
  std::string text;
  size_t place = 0;
};

std::span<const std::byte> bytes_of_floats(const std::vector<float>& numbers) {
  return std::as_bytes(std::span(numbers));
}

TEST(GgufWriter, WritesWhatTheFormatDefines) {
  const TempDir folder;
  const std::vector<float> first{1, 2, 3, 4, 5, 6}, second{7};
  const std::vector<TensorSource> tensors{{"a.weight.lora_a", DType::kF32, {2, 3}, bytes_of_floats(first)},
                                          {"b", DType::kBF16, {2}, bytes_of_floats(second)},
                                          {"c", DType::kF16, {2, 1, 1}, bytes_of_floats(second)}};
  const std::vector<GgufEntry> metadata{{"general.type", "adapter"}, {"alpha", 8.0F}, {"count", uint32_t{3}}};
  write_gguf(folder / "a.gguf", metadata, tensors);
  GgufCursor file{read_text_file(folder / "a.gguf", "file")};
  EXPECT_EQ(file.text.substr(0, 4), "GGUF");
  file.place = 4;
  EXPECT_EQ(file.number<uint32_t>(), 3U);
  EXPECT_EQ(file.number<uint64_t>(), 3U);
  EXPECT_EQ(file.number<uint64_t>(), 3U);
  EXPECT_EQ(file.string(), "general.type");
  EXPECT_EQ(file.number<uint32_t>(), 8U);
  EXPECT_EQ(file.string(), "adapter");
  EXPECT_EQ(file.string(), "alpha");
  EXPECT_EQ(file.number<uint32_t>(), 6U);
  EXPECT_EQ(file.number<float>(), 8.0F);
  EXPECT_EQ(file.string(), "count");
  EXPECT_EQ(file.number<uint32_t>(), 4U);
  EXPECT_EQ(file.number<uint32_t>(), 3U);
  struct Expected {
    std::string name;
    std::vector<uint64_t> dimensions;  // the last one first
    uint32_t type;
    uint64_t offset;
  };
  for (const Expected& tensor :
       {Expected{"a.weight.lora_a", {3, 2}, 0, 0}, Expected{"b", {2}, 30, 32}, Expected{"c", {1, 1, 2}, 1, 64}}) {
    EXPECT_EQ(file.string(), tensor.name);
    ASSERT_EQ(file.number<uint32_t>(), tensor.dimensions.size());
    for (const uint64_t size : tensor.dimensions) EXPECT_EQ(file.number<uint64_t>(), size);
    EXPECT_EQ(file.number<uint32_t>(), tensor.type);
    EXPECT_EQ(file.number<uint64_t>(), tensor.offset);
  }
  const size_t data = (file.place + 31) / 32 * 32;
  ASSERT_EQ(file.text.size(), data + 96);
  EXPECT_EQ(std::memcmp(file.text.data() + data, first.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.text.data() + data + 32, second.data(), 4), 0);
  EXPECT_EQ(std::memcmp(file.text.data() + data + 64, second.data(), 4), 0);
  EXPECT_EQ(file.text.substr(data + 24, 8), std::string(8, '\0'));
}

TEST(GgufWriter, RefusesWhatTheFormatHasNot) {
  const TempDir folder;
  const std::vector<float> numbers{1, 2};
  const TensorSource good{"a", DType::kF32, {2}, bytes_of_floats(numbers)};
  const auto write = [&](const std::vector<TensorSource>& tensors) { write_gguf(folder / "a", {}, tensors); };
  EXPECT_THROW(write({good, good}), std::logic_error);
  EXPECT_THROW(write({{std::string(64, 'a'), DType::kF32, {2}, bytes_of_floats(numbers)}}), std::logic_error);
  EXPECT_THROW(write({{"a", DType::kF64, {1}, bytes_of_floats(numbers)}}), std::logic_error);
  EXPECT_THROW(write({{"a", DType::kF32, {3}, bytes_of_floats(numbers)}}), std::logic_error);
  EXPECT_THROW(write({{"a", DType::kF32, {1, 1, 1, 1, 2}, bytes_of_floats(numbers)}}), std::logic_error);
  EXPECT_TRUE(names_in(folder.path()).empty());
  EXPECT_THROW(write_gguf(folder / "none" / "a", {}, std::vector{good}), CheckpointError);
}

}  // namespace
}  // namespace lancet
