#include "lancet/core/message_tag.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lancet {
namespace {

/// The reference implementation's vectors (siphash.c, vectors_sip64): key 00 01 ... 0f, text 00 01 ... of that length.
TEST(MessageTag, IsSipHash24) {
  const TagKey key{0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
  std::string text;
  for (char byte = 0; byte < 15; ++byte) text += byte;
  EXPECT_EQ(tag_of(key, ""), 0x726fdb47dd0e0e31ULL);
  EXPECT_EQ(tag_of(key, text.substr(0, 1)), 0x74f839c593dc67fdULL);
  EXPECT_EQ(tag_of(key, text.substr(0, 8)), 0x93f5f5799a932462ULL);
  EXPECT_EQ(tag_of(key, text), 0xa129ca6149be45e5ULL);
}

TEST(MessageTag, DependsOnTheSecret) {
  EXPECT_EQ(tag_key("a"), tag_key("a"));
  std::set<uint64_t> tags;
  for (int i = 0; i < 100; ++i) {
    const std::string secret = random_secret();
    EXPECT_EQ(secret.size(), 32U);
    tags.insert(tag_of(tag_key(secret), "failure"));
  }
  EXPECT_EQ(tags.size(), 100U);
}

}  // namespace
}  // namespace lancet
