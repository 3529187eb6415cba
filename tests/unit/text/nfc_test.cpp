// NFC: what it changes and where, against libutf8proc's normalisation of the whole text, and the spans of what changes.
#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

#include "../../../src/text/bpe/nfc.h"
#include "lancet/core/utf8.h"
#include "lancet/text/prompt.h"
#include "support/text_fixture.h"

namespace lancet {
namespace {

using nlohmann::json;
using testing::open_spec;
using testing::text_pieces;
using Pieces = std::vector<std::string>;
using Spans = std::vector<ByteSpan>;

/// `text` with its changes made, each of which must change something and touch no other.
std::string changed(const std::string& text) {
  std::string out;
  size_t done = 0;
  for (const NfcChange& change : nfc_changes(text)) {
    EXPECT_LE(done, change.begin);
    EXPECT_LT(change.begin, change.end);
    EXPECT_NE(text.substr(change.begin, change.end - change.begin), change.text);
    out.append(text, done, change.begin - done) += change.text;
    done = change.end;
  }
  return out.append(text, done);
}

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

TEST(Nfc, ChangesACharacterWithItsMarks) {
  const std::string text = "a e\u0301 \u00e9 \u1100\u1161\u11a8 x\u0301\u0323";
  const std::vector<NfcChange> changes = nfc_changes(text);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].begin, 2u);
  EXPECT_EQ(changes[0].end, 5u);
  EXPECT_EQ(changes[0].text, "\u00e9");
  EXPECT_EQ(changes[1].text, "\uac01") << "Hangul of three parts";
  EXPECT_EQ(changes[2].text, "x\u0323\u0301") << "marks in order, none of which composes";
  EXPECT_EQ(changes[2].end, text.size());
}

TEST(Nfc, LeavesTextThatIsNfc) {
  for (const char* text : {"", "plain", "Zürich", "\u0301", "日本語", "\ud55c\uae00", "\U0001f468\u200d\U0001f469"})
    EXPECT_TRUE(nfc_changes(text).empty()) << text;
}

/// Characters whose own decomposition begins with a mark, excluded ones, and vowels that compose across starters.
TEST(Nfc, EqualsTheLibrarysOnEveryCharacterBetweenOthers) {
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    // Ideographs, Hangul syllables, and what is private or not assigned yet: many alike.
    const bool is_one_of_many = (point >= 0x3400 && point < 0xF900) || point > 0x1F000;
    if (is_one_of_many && point % 101 != 0 && (point < 0x2F800 || point > 0x2FA20)) continue;
    const std::string text = "e" + spelt(point) + "\u0301" + spelt(point);
    ASSERT_EQ(changed(text), library_nfc(text)) << "U+" << std::hex << static_cast<uint32_t>(point);
  }
}

TEST(Nfc, EqualsTheLibrarysOnRandomTexts) {
  const std::vector<char32_t> parts{'a',    'e',    ' ',    0xE9,   0x301,  0x302,   0x323,   0x327,
                                    0x344,  0x345,  0x1100, 0x1161, 0x11A8, 0xAC00,  0xAC01,  0x0CC6,
                                    0x0CC2, 0x0CD5, 0x09C7, 0x09BE, 0x0F71, 0x0F73,  0x0F75,  0x0958,
                                    0x212B, 0xF900, 0x3099, 0x304B, 0x65E5, 0x1D15E, 0x110BA, 0x11099};
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t length = random() % 12; length > 0; --length) text += spelt(parts[random() % parts.size()]);
    ASSERT_EQ(changed(text), library_nfc(text)) << ::testing::PrintToString(text);
  }
}

/// A mark behind a mark must not make the time quadratic: the library's own ordering does.
TEST(Nfc, OrdersFortyThousandMarks) {
  std::string text = "a";
  for (int i = 0; i < 20000; ++i) text += "\u0301\u0323";
  const std::vector<NfcChange> changes = nfc_changes(text);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].text.starts_with("\u1ea1\u0323\u0323"));
  EXPECT_TRUE(changes[0].text.ends_with("\u0301\u0301"));
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
