// ROUGE-L and BLEU, computed by hand; tests/golden has values of rouge_score and nltk.
#include "lancet/text_metrics/overlap.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lancet {
namespace {

TEST(RougeL, IsTheLongestCommonSubsequenceOfWords) {
  // Lin 2004, section 3.1: S2 has "police the gunman" of 4 words in common order, S3 "the gunman".
  const RougeL second = rouge_l("Police kill the gunman.", "police killed the gunman").value();
  EXPECT_DOUBLE_EQ(second.recall, 0.75);
  EXPECT_DOUBLE_EQ(second.f1, 0.75);
  EXPECT_DOUBLE_EQ(rouge_l("the gunman kill police", "police killed the gunman")->recall, 0.5);
  const RougeL longer = rouge_l("a b x c d", "b c").value();
  EXPECT_DOUBLE_EQ(longer.precision, 0.4);
  EXPECT_DOUBLE_EQ(longer.recall, 1);
  EXPECT_DOUBLE_EQ(longer.f1, 0.8 / 1.4);
}

TEST(RougeL, IsOfNothingWithoutWords) {
  EXPECT_FALSE(rouge_l("some", "... !"));
  EXPECT_EQ(rouge_l("", "some")->f1, 0);
  EXPECT_EQ(rouge_l("other", "some")->f1, 0);
}

TEST(CharacterBleu, IsTheGeometricMeanOfPrecisions) {
  EXPECT_DOUBLE_EQ(character_bleu("abcdef", "abcdef"), 1);
  // "abcde" beside "abcdx": 4 of 5, 3 of 4, 2 of 3, 1 of 2.
  EXPECT_DOUBLE_EQ(character_bleu("abcde", "abcdx"), std::pow(0.8 * 0.75 * 2 / 3 * 0.5, 0.25));
  // "aaaaa" beside "aaaa": each run counts as often as the reference has it: 4 of 5, 3 of 4, 2 of 3, 1 of 2.
  EXPECT_DOUBLE_EQ(character_bleu("aaaaa", "aaaa"), std::pow(0.8 * 0.75 * 2 / 3 * 0.5, 0.25));
  EXPECT_DOUBLE_EQ(character_bleu("abcd", "abcdef"), std::exp(1 - 6.0 / 4));
  EXPECT_DOUBLE_EQ(character_bleu("éèêë", "éèêëaa"), std::exp(1 - 6.0 / 4));  // characters, not bytes
  for (const char* text : {"", "abc", "zzzz"}) EXPECT_EQ(character_bleu(text, "abcdef"), 0) << text;
}

}  // namespace
}  // namespace lancet
