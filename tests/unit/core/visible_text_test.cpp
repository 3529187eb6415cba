#include "lancet/core/strings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lancet {
namespace {

TEST(VisibleText, LeavesWhatIsShownAsItIs) {
  for (const std::string text : {"", "plain", "two\nlines\tand a tab", "Zürich → 東京 🗼", "é", "‏שלום"})
    EXPECT_EQ(visible_text(text), text);
}

TEST(VisibleText, SpellsOutWhatATerminalObeys) {
  EXPECT_EQ(visible_text("\x1b[31mred\x1b]0;title\x07"), "\\u001b[31mred\\u001b]0;title\\u0007");
  EXPECT_EQ(visible_text("100 %\roverwritten\b\x7f"), "100 %\\u000doverwritten\\u0008\\u007f");
  EXPECT_EQ(visible_text("\xC2\x9B"
                         "2J"),
            "\\u009b2J");  // ESC [ in one character
  EXPECT_EQ(visible_text("\u202Eevil\u202C \u2066x\u2069 \u2028"), "\\u202eevil\\u202c \\u2066x\\u2069 \\u2028");
  EXPECT_EQ(visible_text(std::string_view("a\0b", 3)), "a\\u0000b");
}

TEST(VisibleText, ReplacesWhatIsNoUtf8) {
  constexpr std::string_view kMark = "\xEF\xBF\xBD";
  EXPECT_EQ(visible_text("\x9b"
                         "2J"),
            cat(kMark, "2J"));  // ESC [ to a terminal of eight bits
  EXPECT_EQ(visible_text("\xC3("), cat(kMark, "("));
  EXPECT_EQ(visible_text("end\xE2\x82"), cat("end", kMark, kMark));
  EXPECT_EQ(visible_text("\xC0\x80\xED\xA0\x80"), cat(kMark, kMark, kMark, kMark, kMark));
}

TEST(VisibleText, IsTheSameJsonDocument) {
  const nlohmann::json document{{"prompt", "\x1b[2J\x7f \xC2\x9B \u202E \n \t \" \\"}, {"n", 3}};
  for (const int indent : {-1, 1}) EXPECT_EQ(nlohmann::json::parse(visible_text(document.dump(indent))), document);
}

TEST(VisibleText, OfPartsIsThatOfTheWhole) {
  const std::string text = "a\x1b[0m é\xC2\x9B → 🗼 \xE2\x82 end";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const size_t whole = whole_characters(std::string_view(text).substr(0, cut));
    EXPECT_LE(cut - whole, 3U);
    EXPECT_EQ(visible_text(text.substr(0, whole)) + visible_text(text.substr(whole)), visible_text(text)) << cut;
  }
}

}  // namespace
}  // namespace lancet
