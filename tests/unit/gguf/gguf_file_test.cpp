#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/gguf/gguf_file.h"
#include "lancet/gguf/gguf_model.h"
#include "support/gguf_files.h"
#include "support/io_support.h"
#include "support/structural_fuzz.h"

namespace lancet {
namespace {

using namespace testing;

constexpr uint64_t kGgufSeed = 20261128;

struct GgufFileTest : public ::testing::Test {
  GgufFile open(const std::string& bytes) const {
    write_bytes(folder / "m.gguf", bytes);
    return GgufFile::open(folder / "m.gguf");
  }
  std::string refusal(const std::string& bytes) const {
    try {
      open(bytes);
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "nothing";
  }
  void expect_says(const std::string& bytes, const std::vector<std::string>& parts) const {
    const std::string message = refusal(bytes);
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\n" << part;
  }
  TempDir folder;
};

TEST_F(GgufFileTest, ReadsMetadataAndTensors) {
  const GgufFile file = open(small_llama_file());
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.whole("llama.context_length"), 128);
  EXPECT_EQ(file.number("llama.rope.freq_base"), 5e5);
  EXPECT_EQ(file.texts("tokenizer.ggml.tokens").at(3), "ab");
  EXPECT_EQ(file.numbers("tokenizer.ggml.token_type"), (std::vector<double>{3, 1, 1, 1, 1}));
  EXPECT_EQ(file.flag("absent"), std::nullopt);
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<int64_t>{5, 32}));
  EXPECT_EQ(file.tensors()[0].bytes, 5U * 34);
  EXPECT_EQ(file.tensors()[1].begin, file.data_begin(0) + 192);
  EXPECT_EQ(file.find_tensor("output_norm.weight")->type->name, "F32");
  EXPECT_TRUE(is_gguf_file(folder / "m.gguf"));
  EXPECT_EQ(open(gguf_file({u32_entry("a", 7)}, {}, "", 2)).whole("a"), 7);
}

TEST_F(GgufFileTest, RefusesOtherFilesAndVersions) {
  expect_says("", {"the head", "to the file's end"});
  expect_says("GGUX" + std::string(40, '\0'), {"the letters GGUF"});
  expect_says(gguf_file({}, {}, "", 1), {"version 2 or 3", "version 1"});
  expect_says(gguf_file({}, {}, "", 0x03000000), {"the other byte order"});
  EXPECT_FALSE(is_gguf_file(folder / "absent"));
}

TEST_F(GgufFileTest, RefusesCountsAndLengthsThatCannotBe) {
  constexpr uint64_t kHuge = uint64_t{1} << 63;
  expect_says("GGUF" + raw<uint32_t>(3) + raw(kHuge) + raw<uint64_t>(0), {"at most 1000000 tensors"});
  expect_says("GGUF" + raw<uint32_t>(3) + raw<uint64_t>(0) + raw(kHuge), {"values of metadata"});
  expect_says(gguf_file({raw(kHuge) + "key"}, {}, ""), {"a text of at most 65535 bytes"});
  expect_says(gguf_file({gguf_text("key") + raw<uint32_t>(8) + raw(kHuge)}, {}, ""), {"'key'", "more bytes"});
  expect_says(gguf_file({gguf_text("key") + raw<uint32_t>(9) + raw<uint32_t>(8) + raw(kHuge)}, {}, ""),
              {"'key'", "more bytes"});
  expect_says(gguf_file({gguf_text("key") + raw<uint32_t>(9) + raw<uint32_t>(12) + raw(kHuge / 4)}, {}, ""),
              {"'key'", "more bytes"});
  expect_says(gguf_file({gguf_text("key") + raw<uint32_t>(9) + raw<uint32_t>(9) + raw<uint64_t>(1)}, {}, ""),
              {"a list of lists"});
  expect_says(gguf_file({gguf_text("key") + raw<uint32_t>(13)}, {}, ""), {"a type of 0 to 12", "13"});
  expect_says(gguf_file({u32_entry("a", 1), u32_entry("a", 1)}, {}, ""), {"'a'", "it twice"});
  for (const uint32_t alignment : {0U, 48U, 1U << 21})
    expect_says(gguf_file({u32_entry("general.alignment", alignment)}, {}, ""), {"a power of two"});
}

TEST_F(GgufFileTest, RefusesTensorsThatCannotBe) {
  const std::string data(256, '\0');
  const auto says = [&](const std::vector<std::string>& tensors, const std::vector<std::string>& parts) {
    expect_says(gguf_file({}, tensors, data), parts);
  };
  says({tensor_info("a", {}, 0, 0)}, {"'a'", "1 to 4 dimensions"});
  says({tensor_info("a", {1, 1, 1, 1, 1}, 0, 0)}, {"1 to 4 dimensions"});
  says({tensor_info("a", {0}, 0, 0)}, {"sizes of 1 or more"});
  says({tensor_info("a", {uint64_t{1} << 62, 4}, 0, 0)}, {"below 2^63"});
  says({tensor_info("a", {uint64_t{1} << 62}, 0, 0)}, {"fewer than 2^63 bytes"});
  says({tensor_info("a", {4}, 999, 0)}, {"a type that lancet reads", "the number 999"});
  says({tensor_info("a", {33}, 8, 0)}, {"whole blocks of 32 for Q8_0", "33 numbers a row"});
  says({tensor_info("a", {4}, 0, 4)}, {"a multiple of 32"});
  says({tensor_info("a", {65}, 0, 0)}, {"260 bytes within the file"});
  says({tensor_info("a", {4}, 0, ~uint64_t{31})}, {"within the file"});
  says({tensor_info("a", {16}, 0, 0), tensor_info("b", {4}, 0, 32)}, {"'b'", "within tensor 'a'"});
  says({tensor_info("a", {4}, 0, 0), tensor_info("a", {4}, 0, 32)}, {"'a'", "it twice"});
  says({tensor_info("", {4}, 0, 0)}, {"a name"});
}

TEST_F(GgufFileTest, RefusesAFileThatIsCutAnywhere) {
  const std::string whole = small_llama_file();
  for (size_t size = 0; size < whole.size(); size += size < 1200 ? 1 : 97)
    EXPECT_NE(refusal(whole.substr(0, size)), "nothing") << size;
}

TEST_F(GgufFileTest, NamesValuesOfAnotherType) {
  const GgufFile file = open(small_llama_file());
  EXPECT_THROW(file.text("llama.block_count"), CheckpointError);
  EXPECT_THROW(file.number("general.architecture"), CheckpointError);
  EXPECT_THROW(file.number("tokenizer.ggml.token_type"), CheckpointError);
  EXPECT_THROW(file.texts("tokenizer.ggml.token_type"), CheckpointError);
}

TEST_F(GgufFileTest, SaysWhichPartOfASplitModelIsMissing) {
  const auto part = [](uint32_t number) {
    return gguf_file({u32_entry("split.no", number), u32_entry("split.count", 2)},
                     {tensor_info(cat("t", number), {4}, 0, 0)}, std::string(32, '\0'));
  };
  write_bytes(folder / "m-00001-of-00002.gguf", part(0));
  const auto message = [&](const std::string& name) -> std::string {
    try {
      return cat(GgufFile::open(folder / name).tensors().size());
    } catch (const CheckpointError& error) {
      return error.what();
    }
  };
  EXPECT_NE(message("m-00001-of-00002.gguf").find("m-00002-of-00002.gguf: download"), std::string::npos);
  write_bytes(folder / "m-00002-of-00002.gguf", part(1));
  EXPECT_EQ(message("m-00001-of-00002.gguf"), "2");
  EXPECT_NE(message("m-00002-of-00002.gguf").find("the first file of a split model"), std::string::npos);
}

/// Any bytes of a small file changed, cut or put in: read or refused, with all that is made of it, and nothing else.
TEST_F(GgufFileTest, FuzzedFilesAreReadOrRefused) {
  const std::string whole = small_llama_file();
  std::mt19937_64 random(kGgufSeed);
  const int64_t files = std::getenv("LANCET_TEST_FULL") != nullptr ? 20'000 : 2'000;
  int64_t read = 0;
  for (int64_t i = 0; i < files; ++i) {
    std::string bytes = whole;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % std::min<size_t>(bytes.size(), 1600);
      switch (random() % 6) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.replace(at, 8, raw(random() % 2 == 0 ? ~uint64_t{0} >> random() % 64 : random() % 300));
          break;
        case 2:
          bytes.erase(at, 1 + random() % 9);
          break;
        case 3:
          bytes.insert(at, std::string(1 + random() % 9, static_cast<char>(random())));
          break;
        case 4:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 64));
          break;
        default:
          bytes.resize(at + 1);
      }
    }
    try {
      const GgufFile file = open(bytes);
      for (const std::string& name : gguf_side_names(file)) static_cast<void>(gguf_side_text(file, name));
      static_cast<void>(gguf_weights(file));
      ++read;
    } catch (const CheckpointError&) {
    }
  }
  EXPECT_GT(read, files / 50);
  EXPECT_LT(read, files);
}

}  // namespace
}  // namespace lancet
