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
using testing::text_pieces;
using testing::write_file;
using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::string>;
using Spans = std::vector<ByteSpan>;

class SentencePieceTokenizer : public ::testing::Test {
 protected:
  std::filesystem::path model_ = LANCET_SOURCE_DIR "/data/demo-model/tokenizer.model";
};

TEST_F(SentencePieceTokenizer, EncodesWithSpansInBytes) {
  const auto tokenizer = open_sentencepiece_tokenizer(model_, {});
  const Encoding encoding = tokenizer->encode("Paris is  \U0001F9FF.");
  EXPECT_EQ(pieces_of(*tokenizer, encoding.ids),
            (Pieces{"<s>", "▁Paris", "▁is", "▁", "▁", "<0xF0>", "<0x9F>", "<0xA7>", "<0xBF>", "."}));
  EXPECT_EQ(encoding.spans,
            (Spans{{0, 0}, {0, 5}, {5, 8}, {8, 9}, {9, 10}, {10, 14}, {10, 14}, {10, 14}, {10, 14}, {14, 15}}));
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
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
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
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { tokenizer->piece(4096); }), {"4096"}));
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
}

/// `config` beside the model.
std::unique_ptr<Tokenizer> open_with(const std::filesystem::path& model, const std::string& config) {
  const TempDir folder;
  std::filesystem::copy_file(model, folder / "tokenizer.model");
  write_file(folder / "tokenizer_config.json", config);
  return open_tokenizer(folder.path());
}

TEST_F(SentencePieceTokenizer, SplitsOutTheAddedTokensOfItsConfiguration) {
  const std::string added = R"("added_tokens_decoder": {"1": {"content": "<s>", "special": true},
      "4096": {"content": "<|user|>", "rstrip": true, "special": true}, "4097": {"content": "[X]", "lstrip": true}})";
  const auto legacy = open_with(model_, "{" + added + "}");
  const Encoding encoding = legacy->encode("<|user|>\n is [X]is<s>", SpecialTokens::kNone);
  EXPECT_EQ(pieces_of(*legacy, encoding.ids), (Pieces{"<|user|>", "▁is", "[X]", "▁is", "<s>"}));
  EXPECT_EQ(encoding.spans, (Spans{{0, 10}, {10, 12}, {12, 16}, {16, 18}, {18, 21}}));
  EXPECT_EQ(legacy->vocab_size(), 4098);
  EXPECT_EQ(legacy->decode(encoding.ids), "is[X] is");
  EXPECT_EQ(legacy->decode(std::vector<TokenId>{4096, 4097, 5000000}), "[X]");
  const auto newer = open_with(model_, R"({"legacy": false, )" + added + "}");
  EXPECT_EQ(text_pieces(*newer, "is[X]is"), (Pieces{"▁is", "[X]", "is"})) << "a dummy prefix at the text's start alone";
  EXPECT_EQ(text_pieces(*newer, "[X]is"), (Pieces{"[X]", "is"}));
  const auto bare = open_with(model_, R"({"add_prefix_space": false, )" + added + "}");
  EXPECT_EQ(text_pieces(*bare, "is[X]is"), (Pieces{"is", "[X]", "is"}));
  EXPECT_EQ(bare->encode("is", SpecialTokens::kNone).spans, (Spans{{0, 2}}));
  EXPECT_EQ(bare->decode(bare->ids(" is")), " is") << "no dummy prefix was put there, so none is taken away";
}

/// InternLM2's model keeps pieces ("[UNUSED_TOKEN_145]") for the tokens that its configuration gives their ids.
TEST_F(SentencePieceTokenizer, GivesAddedTokensTheIdsOfPieces) {
  const auto tokenizer = open_with(
      model_, R"({"added_tokens_decoder": {"4001": {"content": "<|im_end|>"}, "4000": {"content": "<|x|>"}}})");
  EXPECT_EQ(tokenizer->ids("<|im_end|><|x|>", SpecialTokens::kNone), (std::vector<TokenId>{4001, 4000}));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{4001}), "<|im_end|>");
  EXPECT_EQ(tokenizer->piece(4001), "<|im_end|>");
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
}

TEST_F(SentencePieceTokenizer, RefusesAddedTokensThatDoNotFitTheModel) {
  const auto error = [&](const std::string& added) {
    return error_of<TokenizerError>([&] { open_with(model_, R"({"added_tokens_decoder": )" + added + "}"); });
  };
  EXPECT_TRUE(contains(error(R"({"2000000000": {"content": "[PAD]"}})"), {"far beyond the 4096 pieces"}));
  EXPECT_TRUE(contains(error(R"({"4096": {"content": ""}})"), {"an empty token"}));
  EXPECT_TRUE(contains(error(R"({"4096": {"content": "a", "single_word": true}})"),
                       {"tokenizer.model", "single_word: true", "save the tokenizer"}));
  EXPECT_TRUE(contains(error(R"({"-1": {"content": "a"}})"), {"expected token ids as keys"}));
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_with(model_, R"({"split_special_tokens": true})"); }),
                       {"split_special_tokens", "not supported"}));
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
                       {"expected tokenizer.json, tokenizer.model or vocab.json"}));
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_sentencepiece_tokenizer(folder / "none.model", {}); }),
                       {"cannot be read"}));
  write_file(folder / "tokenizer.model", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_TRUE(
      contains(error_of<TokenizerError>([&] { open_tokenizer(folder.path()); }), {"not a SentencePiece model"}));
}

}  // namespace
}  // namespace lancet
