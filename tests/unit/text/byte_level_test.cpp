// Byte-level BPE of tokenizer.json: words, ids, spans of cut characters, text, and which patterns are refused.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "lancet/core/error.h"
#include "lancet/text/prompt.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::open_spec;
using testing::pieces_of;
using testing::text_pieces;
using Ids = std::vector<TokenId>;
using Pieces = std::vector<std::string>;
using Spans = std::vector<ByteSpan>;

const std::string kLlama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
                            R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr int kBos = 900;

/// The characters that stand for the 256 bytes, by byte.
Pieces byte_characters() {
  Pieces characters;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const int point = printable ? byte : next++;
    characters.push_back(
        point < 0x80 ? std::string(1, static_cast<char>(point))
                     : std::string{static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 0x3F))});
  }
  return characters;
}

json split_by(const std::string& pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

json byte_level(const json& changes = json::object()) {
  json component = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  component.update(changes);
  return component;
}

json pre_tokenizer(const std::string& pattern) {
  return {{"type", "Sequence"}, {"pretokenizers", {split_by(pattern), byte_level({{"use_regex", false}})}}};
}

/// Ids 0 to 255 are the bytes; `words` and what `merges` make follow; BOS is added as in Llama 3.
json byte_level_spec(const std::vector<std::pair<std::string, std::string>>& merges, const Pieces& words = {}) {
  json spec = testing::tiny_spec();
  json vocab;
  const auto add = [&](const std::string& piece) {
    if (!vocab.contains(piece)) vocab[piece] = vocab.size();
  };
  for (const std::string& character : byte_characters()) add(character);
  for (const std::string& word : words) add(word);
  for (const auto& [left, right] : merges) add(left + right);
  vocab["<|bos|>"] = kBos;
  spec["model"] = {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}, {"ignore_merges", !words.empty()}};
  json bos = spec["added_tokens"][0];
  bos.update({{"id", kBos}, {"content", "<|bos|>"}});
  spec["added_tokens"] = {bos};
  spec["normalizer"] = nullptr;
  spec["pre_tokenizer"] = pre_tokenizer(kLlama3);
  json processor = spec["post_processor"];
  processor["single"][0]["SpecialToken"]["id"] = "<|bos|>";
  processor["special_tokens"] = {{"<|bos|>", {{"id", "<|bos|>"}, {"ids", {kBos}}, {"tokens", {"<|bos|>"}}}}};
  spec["post_processor"] = {{"type", "Sequence"}, {"processors", {byte_level(), processor}}};
  spec["decoder"] = byte_level();
  return spec;
}

json paris_spec() {
  return byte_level_spec({{"Ġ", "P"}, {"a", "r"}, {"ĠP", "ar"}, {"i", "s"}, {"Ġ", "is"}, {"ĠPar", "is"}});
}

std::string byte_level_error_with(const char* place, const json& value) {
  json spec = paris_spec();
  spec[json::json_pointer(place)] = value;
  return error_of<TokenizerError>([&] { open_spec(spec); });
}

TEST(ByteLevel, MergesWithinWordsAndAddsBos) {
  const auto tokenizer = open_spec(paris_spec());
  EXPECT_EQ(pieces_of(*tokenizer, tokenizer->ids("Paris is Paris")),
            (Pieces{"<|bos|>", "P", "ar", "is", "Ġis", "ĠParis"}));
  EXPECT_EQ(tokenizer->encode("Paris is").spans, (Spans{{0, 0}, {0, 1}, {1, 3}, {3, 5}, {5, 8}}));
  EXPECT_EQ(tokenizer->bos_id(), kBos);
  EXPECT_EQ(tokenizer->decode(tokenizer->ids("Paris is<|bos|> é\n")), "Paris is é\n") << "special tokens are left out";
  EXPECT_EQ(tokenizer->ids(""), (Ids{kBos}));
  EXPECT_EQ(tokenizer->description(), "BPE (byte level), tokenizer.json");
}

TEST(ByteLevel, CutsWordsByThePattern) {
  const Pieces words = {"don", "'T", "Ġ", "Ġknow", "123", "4", "Ġ!?Ċ", "ĠĠ", "Ġx"};
  const auto tokenizer = open_spec(byte_level_spec({}, words));
  EXPECT_EQ(text_pieces(*tokenizer, "don'T  know1234 !?\n   x"),
            (Pieces{"don", "'T", "Ġ", "Ġknow", "123", "4", "Ġ!?Ċ", "ĠĠ", "Ġx"}));
}

TEST(ByteLevel, CutsAsGpt2WithoutASplit) {
  const Pieces words = {"don", "'t", "'", "T", "Ġ", "Ġknow", "1234", "Ġ!?", "Ċ", "x", "Ġdon"};
  json spec = byte_level_spec({}, words);
  spec["pre_tokenizer"] = byte_level();
  EXPECT_EQ(text_pieces(*open_spec(spec), "don't  know1234 !?\nx"),
            (Pieces{"don", "'t", "Ġ", "Ġknow", "1234", "Ġ!?", "Ċ", "x"}));
  EXPECT_EQ(text_pieces(*open_spec(spec), "don'T"), (Pieces{"don", "'", "T"}));
  spec["pre_tokenizer"] = byte_level({{"add_prefix_space", true}});
  const auto tokenizer = open_spec(spec);
  EXPECT_EQ(text_pieces(*tokenizer, "don"), (Pieces{"Ġdon"}));
  EXPECT_EQ(text_pieces(*tokenizer, " don<|bos|>don"), (Pieces{"Ġdon", "<|bos|>", "Ġdon"}));
  EXPECT_EQ(tokenizer->encode("don", SpecialTokens::kNone).spans, (Spans{{0, 3}}));
}

TEST(ByteLevel, CutsByOnePatternAfterAnother) {
  json spec = byte_level_spec({}, {"12", "ab", "abab"});
  spec["pre_tokenizer"]["pretokenizers"] = {split_by(R"(\p{N}{1,2})"), split_by("ab"),
                                            byte_level({{"use_regex", false}})};
  EXPECT_EQ(text_pieces(*open_spec(spec), "12abab12"), (Pieces{"12", "ab", "ab", "12"}));
}

/// The words of `text` when one component cuts it by " " or "-": whatever is cut off is a token of its own.
Pieces words_by(const json& changes, const std::string& text) {
  json split = split_by("-");
  split.update(changes);
  json spec = byte_level_spec({}, {"the", "the-", "-final", "final-", "-", "--", "final", "end", "e"});
  spec["pre_tokenizer"]["pretokenizers"] = {split, byte_level({{"use_regex", false}})};
  return text_pieces(*open_spec(spec), text);
}

TEST(ByteLevel, DoesWithMatchesAsTheSplitSays) {
  const std::string text = "the-final--end";
  const Pieces isolated{"the", "-", "final", "-", "-", "end"}, removed{"the", "final", "end"};
  EXPECT_EQ(words_by({{"behavior", "Isolated"}}, text), isolated);
  EXPECT_EQ(words_by({{"behavior", "Isolated"}, {"invert", true}}, text), isolated);
  EXPECT_EQ(words_by({{"behavior", "Removed"}}, text), removed);
  EXPECT_EQ(words_by({{"behavior", "Removed"}, {"invert", true}}, text), (Pieces{"-", "-", "-"}));
  EXPECT_EQ(words_by({{"behavior", "MergedWithPrevious"}}, text), (Pieces{"the-", "final-", "-", "end"}));
  EXPECT_EQ(words_by({{"behavior", "MergedWithPrevious"}}, "-end"), (Pieces{"-", "end"}));
  const json dash = {{"String", "-"}}, dot = {{"String", "."}};
  EXPECT_EQ(words_by({{"pattern", dash}}, text), isolated);
  EXPECT_EQ(words_by({{"pattern", dot}, {"behavior", "Removed"}}, "the.end"), (Pieces{"the", "end"}))
      << "no expression";
}

TEST(ByteLevel, SpansOfRemovedTextAreNobodys) {
  json spec = byte_level_spec({}, {"the", "end"});
  json split = split_by("-");
  split["behavior"] = "Removed";
  spec["pre_tokenizer"]["pretokenizers"] = {split, byte_level({{"use_regex", false}})};
  const auto tokenizer = open_spec(spec);
  EXPECT_EQ(tokenizer->encode("the-end", SpecialTokens::kNone).spans, (Spans{{0, 3}, {4, 7}}));
  EXPECT_TRUE(contains(error_of<TokenizerError>([&] {
                         locate_subject(*tokenizer, {"the-end", {3, 4}});
                       }),
                       {"no token covers the subject"}));
}

/// Cuts as Gemma's file does: spaces are written "▁" before the Split by " " looks for them, so that all is one word.
TEST(BpeTokenizer, CutsBySpacesThatTheNormalizerLeft) {
  json spec = testing::tiny_spec();
  spec["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  spec["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}};
  const auto gemma = open_spec(spec);
  EXPECT_EQ(text_pieces(*gemma, "Paris is"), (Pieces{"P", "ar", "is", "▁is"}));
  EXPECT_EQ(gemma->encode("Paris is", SpecialTokens::kNone).spans, (Spans{{0, 1}, {1, 3}, {3, 5}, {5, 8}}));
  spec["normalizer"] = nullptr;
  spec["model"]["unk_token"] = nullptr;
  spec["model"]["byte_fallback"] = false;
  EXPECT_EQ(text_pieces(*open_spec(spec), "a is"), (Pieces{"a", "is"})) << "the space is no piece, so it is dropped";
}

TEST(ByteLevel, EveryTokenOfACutCharacterCoversTheCharacter) {
  const Pieces by_byte = byte_characters();
  const auto of = [&](int byte) { return by_byte[static_cast<size_t>(byte)]; };
  // é is C3 A9, 日 is E6 97 A5, 本 is E6 9C AC: a token of the end of one and the beginning of the next
  const auto tokenizer = open_spec(byte_level_spec({{of(0x97), of(0xA5)}, {of(0x97) + of(0xA5), of(0xE6)}}));
  const Encoding encoding = tokenizer->encode("é日本", SpecialTokens::kNone);
  EXPECT_EQ(encoding.ids, (Ids{0xC3, 0xA9, 0xE6, 257, 0x9C, 0xAC}));
  EXPECT_EQ(encoding.spans, (Spans{{0, 2}, {0, 2}, {2, 5}, {2, 8}, {5, 8}, {5, 8}}));
  EXPECT_EQ(tokenizer->decode(encoding.ids), "é日本");
  const LocatedPrompt located = locate_subject(*tokenizer, fill_prompt("{}本 is", "日", "request"));
  EXPECT_EQ(located.ids, (Ids{kBos, 0xE6, 257, 0x9C, 0xAC, ' ', 'i', 's'}));
  EXPECT_EQ(located.lookup, 2) << "the last token with bytes of the subject";
  EXPECT_EQ(continue_prompt(*tokenizer, "é", "日", "request").target, (Ids{' ', 0xE6, 256}));
}

TEST(ByteLevel, BrokenCharactersAreOneReplacementEach) {
  const auto tokenizer = open_spec(paris_spec());
  const auto text_of = [&](const Ids& bytes) {
    std::string text = tokenizer->decode(bytes);
    for (size_t at = 0; (at = text.find("\xEF\xBF\xBD")) != std::string::npos;) text.replace(at, 3, "?");
    return text;
  };
  EXPECT_EQ(text_of({'a', 0xF0, 0x9F, 0x98, 'b'}), "a?b") << "begins a character of four bytes";
  EXPECT_EQ(text_of({0xE6, 0x97}), "?");
  EXPECT_EQ(text_of({0xF0, 0x9F, 0xC3, 0xA9}), "?é");
  EXPECT_EQ(text_of({0x80, 0x80}), "??") << "begin none";
  EXPECT_EQ(text_of({0xC0, 0x80, 0xFF}), "???");
  EXPECT_EQ(text_of({0xE0, 0x80, 'a'}), "??a") << "would be overlong";
  EXPECT_EQ(text_of({0xED, 0xA0, 0x80}), "???") << "a surrogate";
  EXPECT_EQ(text_of({0xF4, 0x90, 0x80}), "???") << "above U+10FFFF";
}

TEST(ByteLevel, AddedTokensThatAreNoBytesAreTheirOwnText) {
  json spec = paris_spec();
  json token = spec["added_tokens"][0];
  token.update({{"id", kBos + 1}, {"content", "[▁]"}, {"special", false}});
  spec["model"]["vocab"]["[▁]"] = kBos + 1;
  spec["added_tokens"].push_back(token);
  const auto tokenizer = open_spec(spec);
  EXPECT_EQ(tokenizer->ids("é[▁]", SpecialTokens::kNone), (Ids{0xC3, 0xA9, kBos + 1}));
  EXPECT_EQ(tokenizer->decode(Ids{0xC3, 0xA9, kBos + 1, ' '}), "é[▁] ");
}

TEST(ByteLevel, ATextIsWhatItsTokensSpell) {
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  const auto tokenizer = open_spec(paris_spec());
  const Pieces parts = {" ",          "\n", "\t", "Paris", " is",    "é",      "日本",
                        "\U0001F600", "1",  "'s", "!",     "\u180e", "\u0085", "ſ"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t i = random() % 20; i > 0; --i) text += parts[random() % parts.size()];
    const Encoding encoding = tokenizer->encode(text);
    ASSERT_EQ(tokenizer->decode(encoding.ids), text) << "seed " << kSeed;
    int64_t done = 0;
    for (const ByteSpan& span : encoding.spans) {
      ASSERT_LE(span.begin, done);
      done = std::max(done, span.end);
    }
    ASSERT_EQ(done, static_cast<int64_t>(text.size()));
  }
}

TEST(ByteLevel, LongTextsAndManyWordsAreThoseOfShortOnes) {
  const auto tokenizer = open_spec(paris_spec());
  EXPECT_EQ(tokenizer->ids(std::string(200000, 'x')).size(), 200001u);
  json spec = paris_spec();
  spec["pre_tokenizer"] = pre_tokenizer("(?:a|b)+");  // takes more stack than matching has at first
  EXPECT_EQ(open_spec(spec)->ids(std::string(200000, 'b')).size(), 200001u);

  std::string text;  // more words than are kept
  for (int i = 0; i < 70000; ++i) text += " is" + std::string(1, static_cast<char>('a' + i % 26)) + std::to_string(i);
  const Ids ids = tokenizer->ids(text);
  EXPECT_EQ(tokenizer->decode(ids), text);
  EXPECT_EQ(tokenizer->ids(text), ids);
}

TEST(ByteLevel, IsThreadSafe) {
  const auto tokenizer = open_spec(paris_spec());
  std::vector<std::string> texts(4);
  for (size_t i = 0; i < 4000; ++i) texts[i % 4] += " Paris" + std::to_string(i);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { found[i] = tokenizer->ids(texts[i]); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(found[i], open_spec(paris_spec())->ids(texts[i]));
}

TEST(ByteLevel, RefusesPatternsThatItWouldReadOtherwise) {
  const auto error = [](const std::string& pattern) {
    return byte_level_error_with("/pre_tokenizer", pre_tokenizer(pattern));
  };
  const std::string place = "tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex";
  EXPECT_EQ(error(kLlama3), "no error");
  EXPECT_EQ(error(R"([^\s\P{Lu}-]?+\p{L}{2,}|\p{N}{3}|(?:a|(b))(?=c)|\.)"), "no error");
  EXPECT_EQ(error(R"(^a.$|\A\b\w\W\d\D[\S\x41\x{1F600}]\u00e9|(?<=a)(?<!b)(?>c)(d)\1\p{Han}\p{^L})"), "no error");
  EXPECT_EQ(error(R"([a[b]&&[^c\p{Greek}]]|[^(\s|[.,])]|[\-\s])"), "no error");
  for (const char* pattern : {R"(\h)", R"(\x)", R"(\x{)", R"(\u12)", R"(\v)", R"(\R)", "a\\"})
    EXPECT_TRUE(contains(error(pattern), {place, "an escape of this kind"})) << pattern;
  for (const char* pattern : {R"(\x{D800})", R"(\x{110000})", R"(\xE9)"})
    EXPECT_TRUE(contains(error(pattern), {place, "a number that is no character's"})) << pattern;
  for (const char* pattern : {R"(\p{Klingon})", R"(\p{L&})", R"(\pL)", R"(\p{)"})
    EXPECT_TRUE(contains(error(pattern), {place, "byte 0: a property other than a general category"})) << pattern;
  EXPECT_TRUE(contains(error(R"((a)\12)"), {place, "a reference of two digits"}));
  for (const char* pattern : {"(?<n>a)b", "(*UCP)a", "(?i)a", "(?~a)"})
    EXPECT_TRUE(contains(error(pattern), {place, "a group of this kind"})) << pattern;
  for (const char* pattern : {"a{1,3}+", "a{2}?", "a{,3}", "a{x}", "a{1"})
    EXPECT_TRUE(contains(error(pattern), {place, "byte 1: a repeat of this form"})) << pattern;
  EXPECT_TRUE(contains(error("[[:alpha:]]"), {place, "a class of POSIX"}));
  for (const char* pattern : {"[a&&]", "[&&a]"})
    EXPECT_TRUE(contains(error(pattern), {place, "an intersection with nothing"})) << pattern;
  EXPECT_TRUE(contains(error("[a&&^b]"), {place, "\"^\" after &&"}));
  EXPECT_TRUE(contains(error("[a[b[c[d[e[f[g[h[i]]]]]]]]]"), {place, "a class within so many classes"}));
  for (const char* pattern : {R"([\s-x])", R"([a-\p{L}])", "[a-[b]]"})
    EXPECT_TRUE(contains(error(pattern), {place, "a range to or from a set"})) << pattern;
  EXPECT_TRUE(contains(error("[]a]"), {place, "a class that begins with"}));
  EXPECT_EQ(error("(?i:'[sdmt]|ll)"), "no error");
  for (const char* pattern : {"(?i:[a-c])", "(?i:[^a])", "(?i:[])", "(?i:a+)", "(?i:[a'])"})
    EXPECT_TRUE(contains(error(pattern), {place, "(?i: with more than letters"})) << pattern;
}

TEST(ByteLevel, RefusesPatternsThatAreNone) {
  const auto error = [](const std::string& pattern) {
    return byte_level_error_with("/pre_tokenizer", pre_tokenizer(pattern));
  };
  for (const char* pattern : {"(a", "a)", "[a", "+a", R"(\p{Lz})", "(?i:a", "(?i:[a)"})
    EXPECT_TRUE(contains(error(pattern), {"pattern.Regex: \"", "not a regular expression: "})) << pattern;
}

TEST(ByteLevel, RefusesPreTokenizersThatItDoesNotKnow) {
  const auto sequence = [](const json& members) {
    return byte_level_error_with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", members}});
  };
  const json whole = byte_level({{"use_regex", false}});
  const auto with = [](const char* key, const json& value) {
    json component = split_by("a");
    component[key] = value;
    return component;
  };
  EXPECT_TRUE(contains(sequence({with("behavior", "Kept"), whole}), {"[0].behavior: \"Kept\": expected Removed"}));
  EXPECT_TRUE(contains(sequence({with("pattern", {{"String", ""}}), whole}), {"[0].pattern.String: an empty pattern"}));
  EXPECT_TRUE(contains(sequence({with("pattern", json::object()), whole}), {"the key \"String\" is missing"}));
  EXPECT_TRUE(contains(sequence({with("times", 2), whole}), {"[0]: the key \"times\""}));
  EXPECT_TRUE(contains(sequence({{{"type", "UnicodeScripts"}}, split_by("a")}),
                       {"[0].type: \"UnicodeScripts\" is not supported", "Digits, Punctuation"}));
  EXPECT_TRUE(contains(sequence({{{"type", "Digits"}}, whole}), {"[0]: the key \"individual_digits\" is missing"}));
  EXPECT_TRUE(
      contains(byte_level_error_with("/pre_tokenizer", byte_level({{"cut", 1}})), {"pre_tokenizer: the key \"cut\""}));
  EXPECT_TRUE(contains(byte_level_error_with("/decoder", byte_level({{"cut", 1}})), {"decoder: the key \"cut\""}));
  EXPECT_TRUE(contains(byte_level_error_with("/post_processor", byte_level({{"cut", 1}})),
                       {"post_processor: the key \"cut\""}));
  EXPECT_TRUE(contains(byte_level_error_with("/normalizer", byte_level()), {"normalizer: the key"}));
}

/// StarCoder2, SmolLM2 and Granite: each digit is a word. Falcon: what the bytes are spelled with is cut again.
TEST(ByteLevel, CutsDigitsAndPunctuation) {
  const auto pieces = [](const json& members, const std::string& text) {
    json spec = byte_level_spec({{"1", "2"}, {"!", "?"}, {"a", "1"}, {"Â", "²"}, {"²", "a"}});
    spec["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", members}};
    return text_pieces(*open_spec(spec), text);
  };
  const json plain = byte_level({{"use_regex", false}});
  const json single = {{"type", "Digits"}, {"individual_digits", true}};
  const json together = {{"type", "Digits"}, {"individual_digits", false}};
  const json marks = {{"type", "Punctuation"}, {"behavior", "Contiguous"}};
  EXPECT_EQ(pieces(json::array({plain}), "a12!?"), (Pieces{"a", "12", "!?"}));
  EXPECT_EQ(pieces(json::array({single, plain}), "12!?"), (Pieces{"1", "2", "!?"}));
  EXPECT_EQ(pieces(json::array({together, plain}), "a12"), (Pieces{"a", "12"}));
  EXPECT_EQ(pieces(json::array({{{"type", "Punctuation"}}, plain}), "12!?"), (Pieces{"12", "!", "?"}));
  EXPECT_EQ(pieces(json::array({marks, plain}), "12!?"), (Pieces{"12", "!?"}));
  EXPECT_EQ(pieces(json::array({together, plain}), "²a"), (Pieces{"Â²", "a"}));
  EXPECT_EQ(pieces(json::array({plain, together}), "²a"),
            (Pieces{"Â", "²", "a"}));  // the second byte's spelling is a digit
}

}  // namespace
}  // namespace lancet
