// NFC as a tokenizer's normalizer: against libutf8proc's own of the whole text, and the spans of what it changes.
#include <gtest/gtest.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "lancet/text/prompt.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::open_spec;
using testing::text_pieces;
using Pieces = std::vector<std::string>;
using Spans = std::vector<ByteSpan>;

std::string library_nfc(const std::string& text) {
  utf8proc_uint8_t* normal = nullptr;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto size = utf8proc_map(bytes, static_cast<utf8proc_ssize_t>(text.size()), &normal, options);
  EXPECT_GE(size, 0);
  std::string out(reinterpret_cast<const char*>(normal), static_cast<size_t>(size));
  std::free(normal);
  return out;
}

std::string spelt(char32_t point) {
  std::string bytes(4, '\0');
  const auto size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), reinterpret_cast<utf8proc_uint8_t*>(bytes.data()));
  bytes.resize(static_cast<size_t>(size));
  return bytes;
}

/// Every byte is a token, so that what is decoded is what was normalised.
std::unique_ptr<Tokenizer> bytes_of_nfc() {
  json spec = testing::tiny_spec();
  spec["normalizer"] = {{"type", "NFC"}};
  spec["post_processor"] = nullptr;
  spec["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  return open_spec(spec);
}

/// Tokens that share bytes of the text, taken together.
struct TokenGroup {
  ByteSpan span;
  std::vector<TokenId> ids;
};

std::vector<TokenGroup> groups_of(const Encoding& encoding) {
  std::vector<TokenGroup> groups;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const ByteSpan span = encoding.spans[i];
    if (groups.empty() || span.begin >= groups.back().span.end) groups.push_back({span, {}});
    groups.back().span.end = std::max(groups.back().span.end, span.end);
    groups.back().ids.push_back(encoding.ids[i]);
  }
  return groups;
}

/// The tokens are the library's text, each group is its own stretch's, and the stretches are the whole text.
void expect_nfc(const Tokenizer& tokenizer, const std::string& text) {
  const Encoding encoding = tokenizer.encode(text);
  ASSERT_EQ(tokenizer.decode(encoding.ids), library_nfc(text)) << ::testing::PrintToString(text);
  int64_t done = 0;
  for (const TokenGroup& group : groups_of(encoding)) {
    ASSERT_EQ(group.span.begin, done) << ::testing::PrintToString(text);
    done = group.span.end;
    const std::string stretch =
        text.substr(static_cast<size_t>(group.span.begin), static_cast<size_t>(group.span.end - group.span.begin));
    ASSERT_EQ(tokenizer.decode(group.ids), library_nfc(stretch)) << ::testing::PrintToString(text);
  }
  ASSERT_EQ(done, static_cast<int64_t>(text.size()));
}

TEST(Nfc, IsOfACharacterWithItsMarks) {
  const auto tokenizer = bytes_of_nfc();
  const std::string text = "a e\u0301 \u00e9 \u1100\u1161\u11a8 x\u0301\u0323";
  expect_nfc(*tokenizer, text);
  EXPECT_EQ(tokenizer->decode(tokenizer->ids(text)), "a \u00e9 \u00e9 \uac01 x\u0323\u0301");
  std::vector<std::string> stretches;
  for (const TokenGroup& group : groups_of(tokenizer->encode("ae\u0301\u0323b\u1100\u1161\u11a8")))
    stretches.push_back(tokenizer->decode(group.ids));
  EXPECT_EQ(stretches, (std::vector<std::string>{"a", "\u1eb9\u0301", "b", "\uac01"}));
}

TEST(Nfc, LeavesTextThatIsNfc) {
  const auto tokenizer = bytes_of_nfc();
  for (const char* text : {"", "plain", "Zürich", "\u0301", "日本語", "\ud55c\uae00", "\U0001f468\u200d\U0001f469"})
    EXPECT_EQ(tokenizer->decode(tokenizer->ids(text)), text);
}

/// Characters whose own decomposition begins with a mark, excluded ones, and vowels that compose across starters.
TEST(Nfc, EqualsTheLibrarysOnEveryCharacterBetweenOthers) {
  const auto tokenizer = bytes_of_nfc();
  std::string text;
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    // Ideographs, Hangul syllables, and what is private or not assigned yet: many alike.
    const bool is_one_of_many = (point >= 0x3400 && point < 0xF900) || point > 0x1F000;
    if (is_one_of_many && point % 101 != 0 && (point < 0x2F800 || point > 0x2FA20)) continue;
    text += "\ne" + spelt(point) + "\u0301" + spelt(point);
    if (text.size() < 4000) continue;
    ASSERT_EQ(tokenizer->decode(tokenizer->ids(text)), library_nfc(text)) << "up to U+" << std::hex << uint32_t{point};
    text.clear();
  }
}

TEST(Nfc, EqualsTheLibrarysOnRandomTexts) {
  const std::vector<char32_t> parts{'a',    'e',    ' ',    0xE9,   0x301,  0x302,   0x323,   0x327,
                                    0x344,  0x345,  0x1100, 0x1161, 0x11A8, 0xAC00,  0xAC01,  0x0CC6,
                                    0x0CC2, 0x0CD5, 0x09C7, 0x09BE, 0x0F71, 0x0F73,  0x0F75,  0x0958,
                                    0x212B, 0xF900, 0x3099, 0x304B, 0x65E5, 0x1D15E, 0x110BA, 0x11099};
  const auto tokenizer = bytes_of_nfc();
  std::mt19937 random(7);
  for (int i = 0; i < 2000 && !HasFatalFailure(); ++i) {
    std::string text;
    for (size_t length = random() % 12; length > 0; --length) text += spelt(parts[random() % parts.size()]);
    expect_nfc(*tokenizer, text);
  }
}

/// Marks must not take quadratic time: the library's own ordering does.
TEST(Nfc, OrdersFortyThousandMarks) {
  std::string text = "a";
  for (int i = 0; i < 20000; ++i) text += "\u0301\u0323";
  const auto tokenizer = bytes_of_nfc();
  const std::string normal = tokenizer->decode(tokenizer->ids(text));
  EXPECT_TRUE(normal.starts_with("\u1ea1\u0323\u0323"));
  EXPECT_TRUE(normal.ends_with("\u0301\u0301"));
  EXPECT_EQ(normal.size(), text.size());  // U+1EA1 has a byte as many as "a" and its mark
}

json nfc_spec() {
  json spec = testing::tiny_spec();
  spec["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, spec["normalizer"]}}};
  spec["model"]["vocab"]["\u00e9"] = spec["model"]["vocab"].size();
  return spec;
}

TEST(Nfc, TokensOfAComposedCharacterCoverItsParts) {
  const auto tokenizer = open_spec(nfc_spec());
  const Encoding encoding = tokenizer->encode("ae\u0301 is", SpecialTokens::kNone);
  EXPECT_EQ(testing::pieces_of(*tokenizer, encoding.ids), (Pieces{"▁", "a", "\u00e9", "▁is"}));
  EXPECT_EQ(encoding.spans, (Spans{{0, 0}, {0, 1}, {1, 4}, {4, 7}}));
  EXPECT_EQ(tokenizer->decode(encoding.ids), "a\u00e9 is");
}

TEST(Nfc, TokensOfAReorderedCharacterCoverAllOfIt) {
  const auto tokenizer = open_spec(nfc_spec());  // x and each mark as bytes
  const Encoding encoding = tokenizer->encode("x\u0301\u0323", SpecialTokens::kNone);
  ASSERT_EQ(encoding.ids.size(), 6u);
  for (size_t i = 1; i < 6; ++i) EXPECT_EQ(encoding.spans[i], (ByteSpan{0, 5}));
}

TEST(Nfc, SubjectsAreFoundWhereTheirLengthChanges) {
  const auto tokenizer = open_spec(nfc_spec());
  for (const char* subject : {"e\u0301", "Pe\u0301", "e\u0301P"}) {
    const SubjectPrompt prompt = fill_prompt("e\u0301e\u0301 is {} is", subject, "request");
    const SubjectTokens found = find_subject(*tokenizer, prompt);
    std::string covered;
    for (int64_t i = found.first; i < found.end; ++i) covered += tokenizer->piece(found.ids[static_cast<size_t>(i)]);
    if (covered.starts_with("▁")) covered.erase(0, 3);  // the space before, where it is one token with what follows
    EXPECT_EQ(covered, library_nfc(subject));
  }
}

TEST(Nfc, AddedTokensAreLookedForInTheComposedText) {
  json spec = nfc_spec();
  json token = spec["added_tokens"][0];
  const auto id = static_cast<int>(spec["model"]["vocab"].size());
  token.update({{"id", id}, {"content", "[e\u0301]"}, {"special", false}, {"normalized", true}});
  spec["normalizer"] = {{"type", "NFC"}};
  spec["added_tokens"].push_back(token);
  const auto tokenizer = open_spec(spec);
  for (const char* text : {"[e\u0301]", "[\u00e9]"}) EXPECT_EQ(tokenizer->ids(text, SpecialTokens::kNone).size(), 1u);
  EXPECT_EQ(tokenizer->encode("a[e\u0301]", SpecialTokens::kNone).spans, (Spans{{0, 1}, {1, 6}}));
}

}  // namespace
}  // namespace lancet
