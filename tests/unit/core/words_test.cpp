#include "lancet/core/strings.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

TEST(Words, CountsHaveTheirPlural) {
  EXPECT_EQ(counted(0, "request"), "0 requests");
  EXPECT_EQ(counted(1, "request"), "1 request");
  EXPECT_EQ(counted(44850, "warning"), "44,850 warnings");
  EXPECT_EQ(count_text(1'000'000), "1,000,000");
  EXPECT_EQ(count_text(999), "999");
}

TEST(Words, SharesArePercentWithOneDecimal) {
  EXPECT_EQ(percent(6.0 / 11), "54.5 %");
  EXPECT_EQ(percent(1), "100.0 %");
  EXPECT_EQ(percent(-0.02), "-2.0 %");
}

TEST(Words, ShortNumbersHaveThreeDigits) {
  EXPECT_EQ(short_number(0.0041234), "0.00412");
  EXPECT_EQ(short_number(1.5e9), "1.5e+09");
}

TEST(Words, AShortfallShowsThatItIsOne) {
  EXPECT_EQ(shortfall_text(6.0 / 11, 0.9), "54.5 %, expected at least 90 %");
  EXPECT_EQ(shortfall_text(0.5, 0.925), "50.0 %, expected at least 92.5 %");
  EXPECT_EQ(shortfall_text(0.9998, 0.9999), "99.98 %, expected at least 99.99 %") << "not 100.0 %";
}

TEST(Words, NoCellOfATableRunsInASpreadsheet) {
  for (const char* text : {"=1+1", "+1", "-1", "@SUM(A1)", "\tx"})
    EXPECT_EQ(csv_text(text), std::string("'") + text) << text;
  EXPECT_EQ(csv_text("=HYPERLINK(\"http://x\",\"a\")"), "\"'=HYPERLINK(\"\"http://x\"\",\"\"a\"\")\"");
  EXPECT_EQ(csv_text("\rx"), "\"'\rx\"");
  for (const char* text : {"", "Rome", "a=b", "1-2", " =x"}) EXPECT_EQ(csv_text(text), text);
  EXPECT_EQ(csv_text("a, b"), "\"a, b\"");
}

}  // namespace
}  // namespace lancet
