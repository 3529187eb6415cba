#include "lancet/core/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace lancet {
namespace {

TEST(ContentHash, IsThirtyTwoHexadecimalDigits) {
  // XXH3-128 of no input, as xxhsum -H2 prints it for an empty file.
  EXPECT_EQ(ContentHash().hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(ContentHash, IsTheSameForTheSameContent) {
  const auto hex = [] { return ContentHash().add("model").add(int64_t{7}).hex(); };
  EXPECT_EQ(hex(), hex());
  ContentHash hash;
  hash.add("model");
  hash.hex();  // reading it changes nothing
  EXPECT_EQ(hash.add(int64_t{7}).hex(), hex());
}

TEST(ContentHash, TellsBoundariesOrderAndEmptyPartsApart) {
  const std::set<std::string> all{ContentHash().hex(),
                                  ContentHash().add("").hex(),
                                  ContentHash().add("").add("").hex(),
                                  ContentHash().add("ab").add("c").hex(),
                                  ContentHash().add("a").add("bc").hex(),
                                  ContentHash().add("c").add("ab").hex(),
                                  ContentHash().add("abc").hex(),
                                  ContentHash().add(int64_t{1}).hex(),
                                  ContentHash().add(int64_t{2}).hex()};
  EXPECT_EQ(all.size(), 9U);
}

TEST(ContentHash, TakesBytesAndTextAlike) {
  const std::array<std::byte, 2> bytes{std::byte{'h'}, std::byte{'i'}};
  EXPECT_EQ(ContentHash().add(bytes).hex(), ContentHash().add("hi").hex());
}

TEST(ContentHash, MovesItsState) {
  ContentHash first;
  first.add("x");
  const std::string hex = first.hex();
  ContentHash second = std::move(first);
  EXPECT_EQ(second.hex(), hex);
  ContentHash third;
  third = std::move(second);
  EXPECT_EQ(third.hex(), hex);
}

TEST(ContentHash, OfPiecesIsThatOfTheWhole) {
  for (const size_t length : {size_t{0}, size_t{1}, size_t{262144}, size_t{1000003}}) {
    std::string text(length, '\0');
    for (size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i * 131 + i / 977);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
    size_t largest = 0;
    const auto read = [&](uint64_t offset, std::span<std::byte> piece) {
      largest = std::max(largest, piece.size());
      std::ranges::copy(bytes.subspan(offset, piece.size()), piece.begin());
    };
    EXPECT_EQ(ContentHash().add(length, read).add("tail").hex(), ContentHash().add(bytes).add("tail").hex());
    EXPECT_LE(largest, size_t{1} << 20);
  }
}

}  // namespace
}  // namespace lancet
