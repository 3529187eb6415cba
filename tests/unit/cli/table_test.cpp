// Tables and numbers as people read them.
#include "terminal.h"

#include <gtest/gtest.h>

namespace lancet::cli {
namespace {

TEST(Tables, AlignByCharactersNotByBytes) {
  EXPECT_EQ(format_table({{"métric", "ä"}, {"x", "100.0"}, {"y"}}), "  métric       ä\n  x        100.0\n  y\n");
  EXPECT_EQ(format_table({}), "");
}

TEST(Tables, SayWhatHasNoValue) {
  EXPECT_EQ(percent_text(0.985), "98.5");
  EXPECT_EQ(percent_text(std::nullopt), "n/a");
}

TEST(Tables, HaveSharesInPercentAndTheRestInTheirUnit) {
  EXPECT_EQ(metric_text({.name = "efficacy_prob", .group = {}, .protocol = {}, .unit = Unit::kShare}, 1.0), "100.0");
  EXPECT_EQ(metric_text({.name = "kl", .group = {}, .protocol = {}, .unit = Unit::kNats}, 0.01234), "0.012 nats");
  EXPECT_EQ(metric_text({.name = "kl", .group = {}, .protocol = {}, .unit = Unit::kNats}, std::nullopt), "n/a");
}

TEST(Tables, CutALineBetweenCharacters) {
  EXPECT_EQ(one_line("äöü\nx", 10), "äöü x");
  EXPECT_EQ(one_line("äöüx", 3), "äö…");
  EXPECT_EQ(one_line("äöü", 3), "äöü");
}

}  // namespace
}  // namespace lancet::cli
