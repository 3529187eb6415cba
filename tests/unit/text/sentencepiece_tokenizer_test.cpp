// tokenizer.model, and the choice between the two files of a model folder.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lancet/core/error.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using testing::contains;
using testing::error_of;
using testing::pieces_of;
using testing::TempDir;
using testing::write_file;
using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::string>;
using Spans = std::vector<ByteSpan>;

const std::filesystem::path kData = LANCET_SOURCE_DIR "/../shared/data";

class SentencePieceTokenizer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model_)) GTEST_SKIP() << model_ << " is absent";
  }
  std::filesystem::path model_ = kData / "tokenizers/llama2/tokenizer.model";
};

TEST_F(SentencePieceTokenizer, EncodesWithSpansInBytes) {
  const auto tokenizer = open_sentencepiece_tokenizer(model_, {});
  const Encoding encoding = tokenizer->encode("Paris is  \U0001F9FF.");
  EXPECT_EQ(pieces_of(*tokenizer, encoding.ids),
            (Pieces{"<s>", "▁Paris", "▁is", "▁▁", "<0xF0>", "<0x9F>", "<0xA7>", "<0xBF>", "."}));
  EXPECT_EQ(encoding.spans, (Spans{{0, 0}, {0, 5}, {5, 8}, {8, 10}, {10, 14}, {10, 14}, {10, 14}, {10, 14}, {14, 15}}));
  EXPECT_EQ(tokenizer->decode(encoding.ids), "Paris is  \U0001F9FF.");
}

TEST_F(SentencePieceTokenizer, GivesADummyPrefixOfItsOwnAnEmptySpan) {
  const auto tokenizer = open_sentencepiece_tokenizer(model_, {});
  const Encoding encoding = tokenizer->encode("\U0001F9FF", SpecialTokens::kNone);
  EXPECT_EQ(encoding.spans, (Spans{{0, 0}, {0, 4}, {0, 4}, {0, 4}, {0, 4}}));
  EXPECT_EQ(tokenizer->ids(""), (Ids{1}));
}

TEST_F(SentencePieceTokenizer, AddsBosAndEosAsAsked) {
  const auto tokenizer = open_sentencepiece_tokenizer(model_, {.add_bos = false, .add_eos = true});
  const Encoding encoding = tokenizer->encode("is");
  EXPECT_EQ(pieces_of(*tokenizer, encoding.ids), (Pieces{"▁is", "</s>"}));
  EXPECT_EQ(encoding.spans.back(), (ByteSpan{2, 2}));
  EXPECT_EQ(pieces_of(*tokenizer, tokenizer->ids("is", SpecialTokens::kNone)), (Pieces{"▁is"}));
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->vocab_size(), 32000);
  EXPECT_EQ(tokenizer->description(), "SentencePiece BPE, tokenizer.model");
}

TEST_F(SentencePieceTokenizer, LeavesSpecialTokensOutOfTextAndReplacesInvalidBytes) {
  const auto tokenizer = open_sentencepiece_tokenizer(model_, {});
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{1, 0, 2, 3 + 0xC3, 3 + 'x', 99999}), "\xEF\xBF\xBDx");
  EXPECT_EQ(tokenizer->decode(tokenizer->ids("  two  spaces ")), "  two  spaces ");
}

TEST_F(SentencePieceTokenizer, RejectsInvalidUtf8AndIdsOutOfRange) {
  const auto tokenizer = open_sentencepiece_tokenizer(model_, {});
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { tokenizer->encode("ab\xFF"); }), {"byte 2 of 3"}));
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { tokenizer->piece(32000); }), {"32000"}));
}

TEST_F(SentencePieceTokenizer, IsOpenedFromAFolderByItsConfiguration) {
  const TempDir folder;
  std::filesystem::copy_file(model_, folder / "tokenizer.model");
  EXPECT_EQ(open_tokenizer(folder.path())->ids("is").front(), 1) << "BOS is the default";
  write_file(folder / "tokenizer_config.json", R"({"add_bos_token": false, "add_eos_token": true})");
  EXPECT_EQ(open_tokenizer(folder.path())->ids("is").size(), 2u);
  EXPECT_EQ(open_tokenizer(folder.path())->ids("is").back(), 2);
  write_file(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {"1": {"content": "<s>"}}})");
  EXPECT_EQ(open_tokenizer(folder.path())->ids("is").front(), 1);
  write_file(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {"32000": {"content": "[PAD]"}}})");
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }),
                       {"32000 \"[PAD]\" is not in tokenizer.model", "save the tokenizer as tokenizer.json"}));
}

TEST_F(SentencePieceTokenizer, GivesWayToTokenizerJson) {
  const TempDir folder;
  std::filesystem::copy_file(model_, folder / "tokenizer.model");
  write_file(folder / "tokenizer.json", testing::tiny_spec().dump());
  EXPECT_TRUE(contains(open_tokenizer(folder.path())->description(), {"tokenizer.json"}));
}

TEST(SentencePieceModel, RefusesAListOfByteLevelRanks) {
  const TempDir folder;
  write_file(folder / "tokenizer.model", "IQ== 0\nIg== 1\n");
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }),
                       {"tokenizer.model", "byte-level BPE ranks", "put the tokenizer.json"}));
}

TEST(TokenizerFiles, SayWhyTheyCannotBeRead) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    const TempDir folder;
    const auto refused = [&] { return error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }); };
    std::filesystem::create_directory(folder / name);
    EXPECT_TRUE(contains(refused(), {name, "cannot be read", "is a folder"}));
    std::filesystem::remove(folder / name);
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);  // opening it would wait for a writer
    EXPECT_TRUE(contains(refused(), {name, "cannot be read", "is a pipe"}));
    std::filesystem::remove(folder / name);
    std::filesystem::create_symlink(name, folder / name);  // to itself
    EXPECT_TRUE(contains(refused(), {name, "cannot be read", "symbolic links"}));
  }
}

TEST(SentencePieceModel, RefusesFilesThatAreNotOne) {
  const TempDir folder;
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }),
                       {"expected tokenizer.json or tokenizer.model"}));
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_sentencepiece_tokenizer(folder / "none.model", {}); }),
                       {"cannot be read"}));
  write_file(folder / "tokenizer.model", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_TRUE(
      contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }), {"not a SentencePiece model"}));
}

}  // namespace
}  // namespace lancet
