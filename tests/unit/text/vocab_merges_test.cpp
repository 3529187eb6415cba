// vocab.json and merges.txt: what their tokenizer's class adds to them, and what they must not be.
#include <gtest/gtest.h>

#include <random>

#include "lancet/core/error.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::TempDir;
using testing::text_pieces;
using testing::write_file;
using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::string>;

constexpr const char* kGpt2Config = R"({"tokenizer_class": "GPT2Tokenizer"})";
constexpr const char* kMerges = "#version: 0.2\nĠ i\ni s\nĠi s\n";

/// Letters, digits, "é" as its two bytes, what kMerges makes, and "<|endoftext|>" (the last).
json small_vocab() {
  json vocab;
  for (const char* piece :
       {"i", "s", "Ġ", "1", "2", "'", "S", "Ã", "©", "Ċ", "e", "Ì", "ģ", "Ġi", "is", "Ġis", "<|endoftext|>"})
    vocab[piece] = vocab.size();
  return vocab;
}

struct VocabFolder {
  VocabFolder(const std::string& config, const std::string& vocab = small_vocab().dump(),
              const std::string& merges = kMerges) {
    write_file(folder / "vocab.json", vocab);
    write_file(folder / "merges.txt", merges);
    if (!config.empty()) write_file(folder / "tokenizer_config.json", config);
  }
  std::unique_ptr<Tokenizer> open() const { return open_tokenizer(folder.path()); }
  std::string error() const {
    return error_of<TokenizerError>([&] { open(); });
  }
  TempDir folder;
};

TEST(VocabAndMerges, AreGpt2sByTheirClass) {
  const auto tokenizer = VocabFolder(kGpt2Config).open();
  EXPECT_EQ(text_pieces(*tokenizer, "is is12'S"), (Pieces{"is", "Ġis", "1", "2", "'", "S"}));
  EXPECT_EQ(tokenizer->ids("is"), (Ids{14})) << "no BOS before the text";
  EXPECT_EQ(tokenizer->ids(""), Ids{});
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->bos_id(), 16);
  EXPECT_EQ(tokenizer->eos_id(), 16);
  EXPECT_EQ(text_pieces(*tokenizer, "is<|endoftext|>is"), (Pieces{"is", "<|endoftext|>", "is"}));
  EXPECT_EQ(text_pieces(*tokenizer, "e\u0301"), (Pieces{"e", "Ì", "ģ"})) << "GPT-2 does not normalise";
  EXPECT_EQ(tokenizer->decode(tokenizer->ids("is<|endoftext|> is\n")), "is is\n");
  EXPECT_EQ(tokenizer->description(), "BPE (byte level), vocab.json");
}

TEST(VocabAndMerges, AreQwen2sByTheirClass) {
  const auto tokenizer = VocabFolder(R"({"tokenizer_class": "Qwen2TokenizerFast", "bos_token": null,
      "eos_token": "<|im_end|>", "added_tokens_decoder": {"16": {"content": "<|endoftext|>", "special": true},
      "17": {"content": "<|im_end|>", "special": true}}})")
                             .open();
  EXPECT_EQ(text_pieces(*tokenizer, "e\u0301"), (Pieces{"Ã", "©"})) << "NFC";
  EXPECT_EQ(text_pieces(*tokenizer, "\n\n is"), (Pieces{"Ċ", "Ċ", "Ġis"}));
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
  EXPECT_EQ(tokenizer->eos_id(), 17);
  EXPECT_EQ(tokenizer->vocab_size(), 18);
  EXPECT_EQ(tokenizer->ids("is<|im_end|>"), (Ids{14, 17}));
}

TEST(VocabAndMerges, TakeTheirClassFromTheModelsTypeWhereNoFileNamesIt) {
  const VocabFolder unnamed("");
  EXPECT_TRUE(contains(unnamed.error(), {"do not say how text is cut", "tokenizer_class GPT2Tokenizer or Qwen2Tok"}));
  write_file(unnamed.folder / "config.json", R"({"model_type": "opt"})");
  EXPECT_TRUE(contains(unnamed.error(), {"model_type opt stands for neither"}));
  write_file(unnamed.folder / "config.json", R"({"model_type": "gptj"})");
  EXPECT_EQ(text_pieces(*unnamed.open(), "e\u0301").size(), 3u);
  write_file(unnamed.folder / "config.json", R"({"model_type": "qwen2"})");
  EXPECT_EQ(text_pieces(*unnamed.open(), "e\u0301").size(), 2u);
  EXPECT_TRUE(contains(VocabFolder(R"({"tokenizer_class": "BloomTokenizer"})").error(),
                       {"tokenizer_config.json", "\"BloomTokenizer\"", "only GPT2Tokenizer and Qwen2Tokenizer"}));
}

TEST(VocabAndMerges, AddWhatTheirConfigurationAsksFor) {
  const std::string class_of = R"({"tokenizer_class": "GPT2Tokenizer", )";
  const auto with_bos = VocabFolder(class_of + R"("add_bos_token": true})").open();
  EXPECT_EQ(with_bos->ids("is"), (Ids{16, 14}));
  EXPECT_TRUE(with_bos->adds_bos());
  EXPECT_EQ(VocabFolder(class_of + R"("add_eos_token": true, "eos_token": "<|endoftext|>"})").open()->ids("is"),
            (Ids{14, 16}));
  EXPECT_EQ(VocabFolder(class_of + R"("add_prefix_space": true})").open()->ids("is"), (Ids{15}));
  EXPECT_TRUE(contains(VocabFolder(class_of + R"("add_bos_token": true})", R"({"i": 0})", "").error(),
                       {"\"<|endoftext|>\" is to be added to every text"}));
}

/// Reads the files that GPT-J has.
TEST(VocabAndMerges, ReadAddedTokensOfTheOlderFiles) {
  const VocabFolder older(kGpt2Config);
  write_file(older.folder / "added_tokens.json", R"({"<|extratoken_1|>": 17, "<|pad|>": 18})");
  write_file(older.folder / "special_tokens_map.json",
             R"({"bos_token": {"content": "<|endoftext|>", "normalized": true}, "pad_token": "<|pad|>"})");
  const auto tokenizer = older.open();
  EXPECT_EQ(text_pieces(*tokenizer, "is<|extratoken_1|><|pad|>"), (Pieces{"is", "<|extratoken_1|>", "<|pad|>"}));
  EXPECT_EQ(tokenizer->decode(Ids{14, 17, 18}), "is<|extratoken_1|>") << "what has a role is special";
  EXPECT_EQ(tokenizer->vocab_size(), 19);
}

TEST(VocabAndMerges, RefuseSpecialTokensWithoutAnId) {
  EXPECT_TRUE(contains(VocabFolder(R"({"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>"})").error(),
                       {"the special token \"<|im_end|>\" has no id", "added_tokens_decoder"}));
}

TEST(VocabAndMerges, RefuseDamagedVocabularies) {
  const auto error = [](const std::string& vocab) { return VocabFolder(kGpt2Config, vocab).error(); };
  EXPECT_TRUE(contains(error("{\"i\": 0, "), {"vocab.json", "not valid JSON"}));
  EXPECT_TRUE(contains(error(R"(["i"])"), {"vocab.json: expected an object"}));
  EXPECT_TRUE(contains(error(R"({"i": 0, "i": 1})"), {"vocab.json", "'i' stands twice"}));
  EXPECT_TRUE(contains(error(R"({"i": 0, "s": 0})"), {"vocab.json: s: the id 0 has two pieces"}));
  EXPECT_TRUE(contains(error(R"({"i": -1})"), {"vocab.json: i: expected a whole number"}));
  EXPECT_TRUE(contains(error(R"({"i": 0.5})"), {"vocab.json: i: expected a whole number"}));
  EXPECT_TRUE(contains(error(R"({"i": 3000000000})"), {"vocab.json: i: an id above 2^31"}));
  EXPECT_TRUE(contains(VocabFolder(kGpt2Config, R"({"i": 2000000000})", "").error(), {"the largest id is 2000000000"}));
}

TEST(VocabAndMerges, RefuseDamagedMerges) {
  const auto error = [](const std::string& merges) {
    return VocabFolder(kGpt2Config, small_vocab().dump(), merges).error();
  };
  EXPECT_EQ(error("Ġ i\r\ni s\r\n"), "no error") << "lines may end in both ways, and begin without a version";
  EXPECT_EQ(error("Ġ i\ni s"), "no error") << "the last line may lack its end";
  EXPECT_TRUE(contains(error("#version: 0.2\nĠ i\n\ni s\n"), {"merges.txt: line 3: \"\": expected two pieces"}));
  EXPECT_TRUE(contains(error("Ġ i\ni"), {"merges.txt: line 2: \"i\": expected two pieces"})) << "cut off";
  EXPECT_TRUE(contains(error("a b c\n"), {"line 1", "one space between them"}));
  EXPECT_TRUE(contains(error("Ġ s\n"), {"line 1", "\"Ġs\" is not in vocab.json"}));
  EXPECT_TRUE(contains(error("x i\n"), {"line 1", "\"x\" is not in vocab.json"}));
  const VocabFolder alone(kGpt2Config);
  std::filesystem::remove(alone.folder / "merges.txt");
  EXPECT_TRUE(contains(alone.error(), {"vocab.json without merges.txt"}));
}

TEST(VocabAndMerges, RefuseDamagedConfigurations) {
  const auto error = [](const std::string& rest) {
    return VocabFolder(R"({"tokenizer_class": "GPT2Tokenizer", )" + rest + "}").error();
  };
  EXPECT_TRUE(contains(error(R"("bos_token": 5)"), {"tokenizer_config.json: bos_token: expected a string"}));
  EXPECT_TRUE(contains(error(R"("added_tokens_decoder": [])"), {"added_tokens_decoder: expected an object"}));
  EXPECT_TRUE(contains(error(R"("added_tokens_decoder": {"x": {"content": "a"}})"), {"expected token ids as keys"}));
  EXPECT_TRUE(contains(error(R"("added_tokens_decoder": {"3": {"content": "is"}})"), {"\"is\" has id 3", "disagrees"}));
  EXPECT_TRUE(contains(error(R"("add_prefix_space": 1)"), {"add_prefix_space: expected true or false"}));
  const VocabFolder older(kGpt2Config);
  write_file(older.folder / "added_tokens.json", R"({"a": "b"})");
  EXPECT_TRUE(contains(older.error(), {"added_tokens.json: a: expected a whole number"}));
}

/// A byte changed, taken out or put in anywhere, or the end cut off: opened and usable, or refused; nothing else.
TEST(VocabAndMerges, SurviveDamageOfAnyKind) {
  std::mt19937 random(11);
  const std::string config = R"({"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>",
      "added_tokens_decoder": {"16": {"content": "<|endoftext|>", "special": true}, "20": {"content": "[X]"}}})";
  const std::vector<std::string> whole{config, small_vocab().dump(), kMerges};
  int opened = 0;
  for (int i = 0; i < 250; ++i) {
    std::vector<std::string> files = whole;
    std::string& damaged = files[random() % 3];
    const size_t at = random() % damaged.size();
    switch (random() % 4) {
      case 0:
        damaged[at] = static_cast<char>(random());
        break;
      case 1:
        damaged.erase(at, 1 + random() % 3);
        break;
      case 2:
        damaged.insert(at, 1, "0\"{}[],: \n"[random() % 10]);
        break;
      default:
        damaged.resize(at);
    }
    const VocabFolder folder(files[0], files[1], files[2]);
    std::unique_ptr<Tokenizer> tokenizer;
    const std::string error = error_of<TokenizerError>([&] { tokenizer = folder.open(); });
    if (tokenizer == nullptr) {
      EXPECT_TRUE(contains(error, {"tokenizer: "}));
      continue;
    }
    ++opened;
    const Ids ids = tokenizer->ids("is [X] 12<|endoftext|>\n\u00e9");
    for (const TokenId id : ids) EXPECT_NO_THROW(tokenizer->piece(id));
    tokenizer->decode(ids);
  }
  EXPECT_GT(opened, 10);
  EXPECT_LT(opened, 240);
}

/// Ids beyond the pieces: an embedding that is padded to a round number gives them logits too.
TEST(VocabAndMerges, IdsBeyondThePiecesHaveNoText) {
  const auto tokenizer = VocabFolder(kGpt2Config).open();
  EXPECT_EQ(tokenizer->decode(Ids{14, 17, 50399, -1, 15}), "is is");
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { tokenizer->piece(17); }), {"no token has the id 17"}));
}

}  // namespace
}  // namespace lancet
