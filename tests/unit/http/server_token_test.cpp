// The token of another program's server: what of it is shown.
#include "lancet/http/server_token.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lancet {
namespace {

TEST(ServerToken, IsHiddenWhereverItStands) {
  EXPECT_EQ(without_token("no s3cret, s3crets3cret", "s3cret"), "no ***, ******");
  EXPECT_EQ(without_token("a*b", "*"), "a***b");
  EXPECT_EQ(without_token("all of it", ""), "all of it");
}

TEST(ServerToken, ComesFromAVariableThatIsThereAndCanBeSent) {
  ::setenv("LANCET_TEST_TOKEN", "s3cret", 1);
  EXPECT_EQ(token_of_environment("LANCET_TEST_TOKEN", "here"), "s3cret");
  for (const char* wrong : {"", "two words", "a\nb"}) {
    ::setenv("LANCET_TEST_TOKEN", wrong, 1);
    EXPECT_THROW(token_of_environment("LANCET_TEST_TOKEN", "here"), ConfigError) << wrong;
  }
  ::unsetenv("LANCET_TEST_TOKEN");
  EXPECT_THROW(token_of_environment("LANCET_TEST_TOKEN", "here"), ConfigError);
}

}  // namespace
}  // namespace lancet
