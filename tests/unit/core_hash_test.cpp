#include "lancet/core/hash.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lancet
