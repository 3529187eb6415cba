// Whether a text is an answer that was asked for.
#include "lancet/text_metrics/answer_match.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lancet {
namespace {

TEST(AnswerMatch, NormalisesAsSquadDoes) {
  EXPECT_EQ(normalized_answer("  The Eiffel-Tower, \n a \"tower\"! "), "eiffeltower tower");
  EXPECT_EQ(normalized_answer("Málaga"), "málaga");
  EXPECT_EQ(normalized_answer("the, a. an"), "");
}

TEST(AnswerMatch, TakesTheFirstStatement) {
  EXPECT_EQ(first_statement(" Rome. It is"), "Rome");
  EXPECT_EQ(first_statement("\nRome, 3.5 km\nnext"), "Rome, 3.5 km");
  EXPECT_EQ(first_statement("St.Louis"), "St.Louis");
  EXPECT_EQ(first_statement(" \n "), "");
}

TEST(AnswerMatch, ComparesWholeWords) {
  const std::vector<std::string> rome{"Rome", "the Eternal City"};
  EXPECT_TRUE(is_exactly(" rome. And so on", rome));
  EXPECT_TRUE(is_exactly("The eternal city!", rome));
  EXPECT_FALSE(is_exactly("Rome in Italy.", rome));
  EXPECT_TRUE(begins_with(" The Rome, Italy, and ...", rome)) << "whatever it goes on with";
  EXPECT_TRUE(begins_with("Eternal city", rome));
  EXPECT_FALSE(begins_with("in Rome", rome));
  EXPECT_FALSE(begins_with("Romeville", rome));
  EXPECT_FALSE(begins_with("Eternal", rome)) << "half of it";
  EXPECT_FALSE(begins_with("the", std::vector<std::string>(1, "the")));
  EXPECT_TRUE(lancet::contains("in Rome, Italy", rome));
  EXPECT_FALSE(lancet::contains("in Romeville", rome));
  EXPECT_FALSE(lancet::contains("anything", std::vector<std::string>(1, "the")));  // nothing is left of it
}

}  // namespace
}  // namespace lancet
