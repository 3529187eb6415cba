#include "lancet/core/strings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <sstream>

namespace lancet {
namespace {

TEST(Strings, CatPutsEverythingTogether) {
  EXPECT_EQ(cat("layer ", 3, " of ", size_t{8}, ' ', 0.5, std::string_view("!")), "layer 3 of 8 0.5!");
  EXPECT_EQ(cat(), "");
}

TEST(Strings, CatIsWhatAStreamPrints) {
  const auto expect_streamed = [](const auto&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    EXPECT_EQ(cat(parts...), out.str());
  };
  expect_streamed("text", std::string("a\0b", 3), std::string_view("view"), 'c', true, false);
  expect_streamed(int8_t{'s'}, uint8_t{'u'}, int16_t{-300}, uint16_t{60'000}, -1, 3u);
  expect_streamed(std::numeric_limits<int64_t>::min(), ' ', std::numeric_limits<uint64_t>::max());
  expect_streamed(0.1f, ' ', 1e300, ' ', 1.0, ' ', -2.5, ' ', std::numeric_limits<double>::infinity());
  expect_streamed(std::filesystem::path("two words"));
}

TEST(Strings, JoinPutsSeparatorsBetween) {
  EXPECT_EQ(join(std::vector<std::string>{}), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(join(std::vector<std::string>{"a", "", "c"}), "a, , c");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, "."), "a.b");
}

TEST(Strings, ShapesAreInBrackets) {
  EXPECT_EQ(shape_text(std::vector<int64_t>{4096, 14336}), "[4096, 14336]");
  EXPECT_EQ(shape_text(std::vector<int64_t>{}), "[]");
}

TEST(Strings, BytesAreInPowersOfAThousand) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(14'700'000), "14.7 MB");
  EXPECT_EQ(bytes_text(16'060'000'000), "16.1 GB");
  EXPECT_EQ(bytes_text(18'446'744'073'709'551'615ULL), "18446744.1 TB");
}

TEST(Strings, BinaryBytesAreInPowersOf1024) {
  EXPECT_EQ(binary_bytes_text(1023), "1023 B");
  EXPECT_EQ(binary_bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(binary_bytes_text(uint64_t{80} << 30), "80.0 GiB");
}

TEST(Strings, BytesAreReadWithTheirUnit) {
  EXPECT_EQ(parse_bytes("80GiB"), int64_t{80} << 30);
  EXPECT_EQ(parse_bytes("1.5 GB"), 1'500'000'000);
  EXPECT_EQ(parse_bytes("12B"), 12);
  EXPECT_EQ(parse_bytes("2kB"), 2000);
  for (const char* text :
       {"", "80", "GiB", "-1GiB", "0GiB", "1gib", "1GiBs", "1e3GB", "nanGB", "0.1B", "9999999999TiB"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(Strings, SplitTrimsTheParts) {
  EXPECT_EQ(split("a, b ,c", ','), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(split("a,", ','), (std::vector<std::string>{"a", ""}));
}

TEST(Strings, ExcerptsEndAtACharacter) {
  EXPECT_EQ(excerpt("abc", 3), "abc");
  EXPECT_EQ(excerpt("abcd", 3), "abc...");
  EXPECT_EQ(excerpt("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
  EXPECT_EQ(excerpt("a\xe2\x82\xac!", 3), "a...");
  EXPECT_EQ(excerpt("\xe2\x82\xac\xe2\x82\xac", 3), "\xe2\x82\xac...");
  EXPECT_EQ(excerpt("\xf0\x9f\x98\x80", 2), "...");
}

TEST(Strings, CharactersAreCountedWhereTheyBegin) {
  const std::string text =
      "a\xe2\x82\xac"
      "b\xf0\x9f\x98\x80";  // 1 + 3 + 1 + 4 bytes
  EXPECT_EQ(count_characters(text), 4U);
  EXPECT_EQ(count_characters(""), 0U);
  const std::vector<size_t> ends{0, 1, 4, 5, 9, 9};
  for (size_t count = 0; count < ends.size(); ++count)
    EXPECT_EQ(bytes_of_characters(text, count), ends[count]) << count;
}

TEST(Strings, TheFirstInvalidByteIsFound) {
  EXPECT_EQ(first_invalid_utf8("a\xe2\x82\xac"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("a\xe2\x82"), 1U);
  EXPECT_EQ(first_invalid_utf8("ab\xff"), 2U);
}

TEST(Strings, BlankIsWhiteSpaceAlone) {
  EXPECT_TRUE(is_blank(""));
  EXPECT_TRUE(is_blank(" \t\n\r\f\v"));
  EXPECT_FALSE(is_blank("  . "));
  EXPECT_FALSE(is_blank("\xc2\xa0"));
}

TEST(Strings, NearestFindsTheSlipOfTheHand) {
  const std::vector<std::string> keys{"covariance_weight", "layers", "lr", "method", "values"};
  EXPECT_EQ(nearest("covariance_wieght", keys), "covariance_weight");
  EXPECT_EQ(nearest("layer", keys), "layers");
  EXPECT_EQ(nearest("metod", keys), "method");
  EXPECT_EQ(nearest("lr", keys), "lr");
  EXPECT_EQ(nearest("temperature", keys), "");
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), "");
}

TEST(Strings, AWholeNumberIsAllOfTheText) {
  EXPECT_EQ(parse_whole_number("0"), 0);
  EXPECT_EQ(parse_whole_number("-12"), -12);
  EXPECT_EQ(parse_whole_number("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1.0", "0x1", "one", "9223372036854775808"})
    EXPECT_EQ(parse_whole_number(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lancet
