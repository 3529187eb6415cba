// Ids, spans and text of tokenizer.json; ids against a slow implementation, spans against what they must spell.
#include <gtest/gtest.h>

#include <random>

#include "lancet/core/error.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::open_spec;
using testing::pieces_of;
using testing::text_pieces;
using testing::tiny_spec;
using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::string>;
using Spans = std::vector<ByteSpan>;

json added_token(int id, const std::string& content, const json& changes = {}) {
  json token = {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", false}};
  if (changes.is_object()) token.update(changes);
  return token;
}

json metaspace(const json& changes) {
  json component = {{"type", "Metaspace"}, {"replacement", "▁"}};
  component.update(changes);
  return component;
}

int next_id(const json& spec) { return static_cast<int>(spec["model"]["vocab"].size()); }

TEST(BpeTokenizer, MergesByRankAndAddsBos) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_EQ(pieces_of(*tokenizer, tokenizer->ids("Paris is")), (Pieces{"<s>", "▁Paris", "▁is"}));
  EXPECT_EQ(text_pieces(*tokenizer, "Paris is"), (Pieces{"▁Paris", "▁is"}));
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->vocab_size(), next_id(tiny_spec()));
  EXPECT_EQ(tokenizer->description(), "BPE (SentencePiece kind), tokenizer.json");
}

TEST(BpeTokenizer, SpansCoverTheTextOfEachTokenInBytes) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_EQ(tokenizer->encode("Paris is").spans, (Spans{{0, 0}, {0, 5}, {5, 8}}));
  EXPECT_EQ(tokenizer->encode("  is").spans, (Spans{{0, 0}, {0, 0}, {0, 1}, {1, 4}}));
}

TEST(BpeTokenizer, EveryByteTokenOfACharacterCoversTheCharacter) {
  const auto tokenizer = open_spec(tiny_spec());
  const Encoding encoding = tokenizer->encode("aé\U0001F600 s", SpecialTokens::kNone);
  EXPECT_EQ(pieces_of(*tokenizer, encoding.ids),
            (Pieces{"▁", "a", "<0xC3>", "<0xA9>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "▁", "s"}));
  EXPECT_EQ(encoding.spans, (Spans{{0, 0}, {0, 1}, {1, 3}, {1, 3}, {3, 7}, {3, 7}, {3, 7}, {3, 7}, {7, 8}, {8, 9}}));
}

TEST(BpeTokenizer, EncodesEmptyTextAsSpecialTokensOnly) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_EQ(tokenizer->ids(""), (Ids{1}));
  EXPECT_EQ(tokenizer->ids("", SpecialTokens::kNone), Ids{});
  EXPECT_EQ(tokenizer->decode({}), "");
}

TEST(BpeTokenizer, DecodesToTheTextThatWasEncoded) {
  const auto tokenizer = open_spec(tiny_spec());
  for (const std::string text : {"Paris is", "  two  spaces ", "é\U0001F600\n\t", "", " "}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->ids(text)), text);
  }
}

TEST(BpeTokenizer, DecodesInvalidByteRunsAsReplacementCharacters) {
  const auto tokenizer = open_spec(tiny_spec());
  const TokenId lead = 3 + 0xC3;  // without its continuation
  const TokenId a = tokenizer->ids("a", SpecialTokens::kNone).back();
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{a, lead, a}),
            "a\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{3 + 'x', lead}), "\xEF\xBF\xBD\xEF\xBF\xBD") << "the run is one";
}

TEST(BpeTokenizer, LeavesSpecialTokensAndIdsBeyondTheVocabularyOutOfText) {
  const auto tokenizer = open_spec(tiny_spec());
  std::vector<TokenId> ids = tokenizer->ids("Paris");
  ids.insert(ids.end(), {2, 0, 99999, -1});
  EXPECT_EQ(tokenizer->decode(ids), "Paris");
}

TEST(BpeTokenizer, RejectsInvalidUtf8WithItsBytePosition) {
  const auto tokenizer = open_spec(tiny_spec());
  const std::vector<std::string> invalid = {
      "\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"};
  for (const std::string& bytes : invalid) {
    EXPECT_TRUE(contains(error_of<TokenizerError>([&] { tokenizer->encode("é " + bytes); }), {"byte 3 of"}));
  }
}

TEST(BpeTokenizer, SplitsAddedTokensOutOfTheTextAndPrependsToEachStretchBetween) {
  const auto tokenizer = open_spec(tiny_spec());
  const Encoding encoding = tokenizer->encode("is<s>is </s>", SpecialTokens::kNone);
  EXPECT_EQ(pieces_of(*tokenizer, encoding.ids), (Pieces{"▁is", "<s>", "▁is", "▁", "</s>"}));
  EXPECT_EQ(encoding.spans, (Spans{{0, 2}, {2, 5}, {5, 7}, {7, 8}, {8, 12}}));
}

TEST(BpeTokenizer, TakesTheLongestAddedTokenAtTheLeftmostPlace) {
  json spec = tiny_spec();
  const int id = next_id(spec);
  for (const char* content : {"<x", "<x>y", "x>y>"})
    spec["added_tokens"].push_back(added_token(id + static_cast<int>(spec["added_tokens"].size()) - 3, content));
  EXPECT_EQ(text_pieces(*open_spec(spec), "<x>y><x"), (Pieces{"<x>y", "▁", "<0x3E>", "<x"}));
}

// By the square of their number 20,000 added tokens would take minutes.
TEST(BpeTokenizer, FindsEachOfManyAddedTokens) {
  constexpr int kMany = 20'000;
  json spec = tiny_spec();
  const int first = next_id(spec);
  for (int i = 0; i < kMany; ++i)
    spec["added_tokens"].push_back(added_token(first + i, "<t" + std::to_string(i) + ">", {{"special", i % 2 == 0}}));
  const auto tokenizer = open_spec(spec);
  std::string text;
  Ids expected;
  for (int i = kMany - 1; i >= 0; i -= 7) {
    text += "<t" + std::to_string(i) + ">";
    expected.push_back(first + i);
  }
  EXPECT_EQ(tokenizer->ids(text, SpecialTokens::kNone), expected);
}

/// Eight times each "s" becomes a thousand.
json growing_steps() {
  return json(8, {{"type", "Replace"}, {"pattern", {{"String", "s"}}}, {"content", std::string(1000, 's')}});
}

TEST(BpeTokenizer, RefusesANormalizerThatTakesAllMemory) {
  json spec = tiny_spec();
  spec["normalizer"] = {{"type", "Sequence"}, {"normalizers", growing_steps()}};
  const auto tokenizer = open_spec(spec);
  EXPECT_EQ(tokenizer->decode(tokenizer->ids("aa")), "aa");
  const std::string message = error_of<TokenizerError>([&] { tokenizer->ids("is"); });
  EXPECT_TRUE(contains(message, {"the normalizer makes a text longer than 65568 bytes of it"}));
}

TEST(BpeTokenizer, RefusesADecoderThatTakesAllMemory) {
  json spec = tiny_spec();
  spec["decoder"] = {{"type", "Sequence"}, {"decoders", growing_steps()}};
  const auto tokenizer = open_spec(spec);
  const Ids ids = tokenizer->ids("is", SpecialTokens::kNone);
  const std::string message = error_of<TokenizerError>([&] { tokenizer->decode(ids); });
  EXPECT_TRUE(contains(message, {"the decoder makes a text longer than "}));
}

TEST(BpeTokenizer, LooksForNormalizedAddedTokensInTheNormalizedText) {
  json spec = tiny_spec();
  spec["added_tokens"].push_back(added_token(next_id(spec), "[X]", {{"normalized", true}}));
  const auto tokenizer = open_spec(spec);
  const Encoding encoding = tokenizer->encode("[X] [X]a[X]", SpecialTokens::kNone);
  EXPECT_EQ(pieces_of(*tokenizer, encoding.ids), (Pieces{"[X]", "[X]", "a", "<0x5B>", "<0x58>", "<0x5D>"}))
      << "what is looked for is ▁[X], as in Hugging Face";
  EXPECT_EQ(encoding.spans[1], (ByteSpan{3, 7}));
}

TEST(BpeTokenizer, StrippingAddedTokensTakeTheWhiteSpaceBesideThem) {
  json spec = tiny_spec();
  spec["added_tokens"].push_back(added_token(next_id(spec), "[X]", {{"lstrip", true}, {"rstrip", true}}));
  const auto tokenizer = open_spec(spec);
  const Encoding encoding = tokenizer->encode("is \u3000[X]\n is", SpecialTokens::kNone);
  EXPECT_EQ(pieces_of(*tokenizer, encoding.ids), (Pieces{"▁is", "[X]", "▁is"}));
  EXPECT_EQ(encoding.spans, (Spans{{0, 2}, {2, 11}, {11, 13}}));
}

TEST(BpeTokenizer, MetaspacePrependsBySchemeAndCutsWords) {
  json spec = tiny_spec();
  spec["normalizer"] = nullptr;
  spec["pre_tokenizer"] = metaspace({{"prepend_scheme", "always"}});
  EXPECT_EQ(text_pieces(*open_spec(spec), "is<s>is"), (Pieces{"▁is", "<s>", "▁is"}));
  EXPECT_EQ(text_pieces(*open_spec(spec), " is"), (Pieces{"▁is"})) << "a space stands there already";
  spec["pre_tokenizer"] = metaspace({{"prepend_scheme", "first"}});
  EXPECT_EQ(text_pieces(*open_spec(spec), "is<s>is"), (Pieces{"▁is", "<s>", "is"}));
  spec["pre_tokenizer"] = metaspace({{"prepend_scheme", "never"}});
  EXPECT_EQ(text_pieces(*open_spec(spec), "is is"), (Pieces{"is", "▁is"}));
  spec["pre_tokenizer"] = metaspace({{"add_prefix_space", false}});
  EXPECT_EQ(text_pieces(*open_spec(spec), "is"), (Pieces{"is"}));
}

TEST(BpeTokenizer, MetaspaceWithoutSplitLetsMergesCrossWords) {
  json spec = tiny_spec();
  spec["normalizer"] = nullptr;
  spec["model"]["vocab"]["s▁"] = next_id(spec);
  spec["model"]["merges"].insert(spec["model"]["merges"].begin(), json::array({"s", "▁"}));
  spec["pre_tokenizer"] = metaspace({{"prepend_scheme", "always"}, {"split", true}});
  EXPECT_EQ(text_pieces(*open_spec(spec), "is is"), (Pieces{"▁is", "▁is"}));
  spec["pre_tokenizer"] = metaspace({{"prepend_scheme", "always"}, {"split", false}});
  EXPECT_EQ(text_pieces(*open_spec(spec), "is is"), (Pieces{"▁", "i", "s▁", "is"}));
}

TEST(BpeTokenizer, UnknownCharactersAreFusedNotFusedOrDroppedAsTheModelSays) {
  json spec = tiny_spec();
  spec["model"]["byte_fallback"] = false;
  const Encoding fused = open_spec(spec)->encode("aéßs", SpecialTokens::kNone);
  EXPECT_EQ(pieces_of(*open_spec(spec), fused.ids), (Pieces{"▁", "a", "<unk>", "s"}));
  EXPECT_EQ(fused.spans[2], (ByteSpan{1, 5}));
  spec["model"]["fuse_unk"] = false;
  EXPECT_EQ(text_pieces(*open_spec(spec), "aéßs"), (Pieces{"▁", "a", "<unk>", "<unk>", "s"}));
  spec["model"]["unk_token"] = nullptr;
  const Encoding dropped = open_spec(spec)->encode("aéßs", SpecialTokens::kNone);
  EXPECT_EQ(dropped.spans, (Spans{{0, 0}, {0, 1}, {5, 6}}));
}

TEST(BpeTokenizer, IgnoreMergesTakesAWholeWordOfTheVocabulary) {
  json spec = tiny_spec();
  spec["normalizer"] = nullptr;
  spec["pre_tokenizer"] = metaspace(json::object());
  spec["model"]["vocab"]["▁ras"] = next_id(spec);
  EXPECT_EQ(text_pieces(*open_spec(spec), "ras"), (Pieces{"▁", "r", "a", "s"}));
  spec["model"]["ignore_merges"] = true;
  EXPECT_EQ(text_pieces(*open_spec(spec), "ras"), (Pieces{"▁ras"}));
}

TEST(BpeTokenizer, PutsSpecialTokensOnBothSidesWhenTheTemplateSaysSo) {
  json spec = tiny_spec();
  spec["post_processor"]["single"].push_back({{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}});
  spec["post_processor"]["special_tokens"]["</s>"] = {{"id", "</s>"}, {"ids", {2}}, {"tokens", {"</s>"}}};
  const Encoding encoding = open_spec(spec)->encode("is");
  EXPECT_EQ(encoding.ids.back(), 2);
  EXPECT_EQ(encoding.spans, (Spans{{0, 0}, {0, 2}, {2, 2}}));
}

TEST(BpeTokenizer, TakesTheNamesOfBosAndEosFromTheConfiguration) {
  EXPECT_EQ(open_spec(tiny_spec())->eos_id(), std::nullopt);
  EXPECT_EQ(open_spec(tiny_spec(), R"({"eos_token": "</s>"})")->eos_id(), 2);
  EXPECT_EQ(open_spec(tiny_spec(), R"({"eos_token": {"content": "</s>"}, "chat_template": "x"})")->eos_id(), 2);
  json spec = tiny_spec();
  spec["post_processor"] = nullptr;
  const auto without = open_spec(spec, R"({"bos_token": "<s>", "eos_token": null})");
  EXPECT_EQ(without->bos_id(), 1);
  EXPECT_EQ(without->eos_id(), std::nullopt);
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { open_spec(spec, R"({"eos_token": "<end>"})"); }),
                       {"eos_token: \"<end>\" is not in tokenizer.json"}));
}

TEST(BpeTokenizer, NamesThePieceOfAnIdAndRefusesOthers) {
  const auto tokenizer = open_spec(tiny_spec());
  EXPECT_EQ(tokenizer->piece(3), "<0x00>");
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { tokenizer->piece(4000); }), {"4000"}));
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] { tokenizer->piece(-1); }), {"-1"}));
}

/// Merges the leftmost pair of the lowest rank until there is none: the definition.
Pieces merge_slowly(Pieces symbols, const std::vector<std::pair<std::string, std::string>>& merges) {
  for (bool merged = true; merged;) {
    merged = false;
    for (const auto& [left, right] : merges) {
      for (size_t i = 0; i + 1 < symbols.size() && !merged; ++i) {
        if (symbols[i] != left || symbols[i + 1] != right) continue;
        symbols[i] += right;
        symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(i) + 1);
        merged = true;
      }
      if (merged) break;
    }
  }
  return symbols;
}

TEST(BpeTokenizer, MergesAsTheSlowDefinitionDoes) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 20; ++round) {
    json spec = tiny_spec();
    spec["normalizer"] = spec["decoder"] = nullptr;
    Pieces known = {"a", "b", "c"};
    std::vector<std::pair<std::string, std::string>> merges;
    while (known.size() < 40) {
      const std::string left = known[below(known.size())];
      const std::string right = known[below(known.size())];
      if (left.size() + right.size() > 8 || std::count(known.begin(), known.end(), left + right) > 0) continue;
      merges.emplace_back(left, right);
      known.push_back(left + right);
    }
    json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
    for (const std::string& piece : known) vocab[piece] = vocab.size();
    spec["model"]["vocab"] = vocab;
    spec["model"]["merges"] = merges;
    const auto tokenizer = open_spec(spec);
    for (int text = 0; text < 50; ++text) {
      Pieces letters(below(60));
      std::string joined;
      for (std::string& letter : letters) joined += letter = std::string(1, static_cast<char>('a' + below(3)));
      ASSERT_EQ(text_pieces(*tokenizer, joined), merge_slowly(letters, merges))
          << "seed " << kSeed << ", text " << joined;
    }
  }
}

TEST(BpeTokenizer, ReadsTheDemoModel) {
  const auto tokenizer = open_tokenizer(LANCET_SOURCE_DIR "/data/demo-model");
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(pieces_of(*tokenizer, tokenizer->ids("Hello there")), (Pieces{"<s>", "▁Hel", "lo", "▁the", "re"}));
}

}  // namespace
}  // namespace lancet
