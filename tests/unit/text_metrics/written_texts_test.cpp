// What is measured of whole texts: words, entropy, TF-IDF.
#include <gtest/gtest.h>

#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/text_metrics/ngram_entropy.h"
#include "lancet/text_metrics/tfidf.h"
#include "lancet/text_metrics/word_tokens.h"
#include "support/temp_dir.h"

namespace lancet {
namespace {

// Right column: what nltk 3.10 makes of the left one, its sentence model told the abbreviations that are known here.
TEST(WordTokens, AreThoseOfNltk) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ""},
      {"one", "one"},
      {"He said, \"We can't go.\" Then he left (at 5:30, roughly) for New York.",
       "He said , `` We ca n't go . '' Then he left ( at 5:30 , roughly ) for New York ."},
      {"Good muffins cost $3.88 in New York.  Please buy me two of them; thanks.",
       "Good muffins cost $ 3.88 in New York . Please buy me two of them ; thanks ."},
      {"It's the dogs' home, isn't it? They'll say 'no' and we've lost -- again...",
       "It 's the dogs ' home , is n't it ? They 'll say ' no ' and we 've lost -- again ..."},
      {"Dr. Smith met J. R. Tolkien in the U.S. in 1990. The end.",
       "Dr. Smith met J. R. Tolkien in the U.S. in 1990 . The end ."},
      {"“Curly quotes” and ‘single’ ones — don’t split?", "“ Curly quotes ” and ‘ single ’ ones — don ’ t split ?"},
      {"I cannot do it, gonna be [bracketed] {braced} <tagged> 100% #1 @home & co.",
       "I can not do it , gon na be [ bracketed ] { braced } < tagged > 100 % # 1 @ home & co ."},
      {"a `code` b ``quoted'' c \"open and close\", d", "a ` code ` b `` quoted '' c `` open and close '' , d"},
      {"The price is 3,000 and the ratio 1:2, or so: yes!", "The price is 3,000 and the ratio 1:2 , or so : yes !"},
      {"end with quote.\" and more.", "end with quote . '' and more ."},
      {"wait... what?! No!!! ok", "wait ... what ? ! No ! ! ! ok"},
      {"'Tis the season. 'twas so", "' Tis the season . ' twas so"},
      {"rock 'n' roll and the '90s", "rock 'n ' roll and the ' 90s"},
      {"Motosacoche is in Geneva. It is a company. it was founded by Mr. Dufaux",
       "Motosacoche is in Geneva . It is a company . it was founded by Mr. Dufaux"},
      {"state-of-the-art--really", "state-of-the-art -- really"},
      {"x, y,z and 10,000;a:b c:1", "x , y , z and 10,000 ; a : b c:1"},
      {"Who's John's? I'd'SAID I'LL GO. DON'T.", "Who 's John 's ? I'd'SAID I 'LL GO . DO N'T ."},
      {"Ends with ellipsis ...", "Ends with ellipsis ..."},
      {"(Parenthetical end.)", "( Parenthetical end . )"},
      {"St. Louis, Mo. is a city. Prof. X vs. Y Inc. won.", "St. Louis , Mo . is a city . Prof. X vs. Y Inc. won ."}};
  for (const auto& [text, words] : cases) EXPECT_EQ(join(word_tokens(text), " "), words);
}

TEST(NgramEntropy, OfTextsThatCanBeCounted) {
  EXPECT_EQ(ngram_entropy(""), 0);
  EXPECT_EQ(ngram_entropy("alone"), 0);
  EXPECT_EQ(ngram_entropy("same same same same same"), 0);
  // five different words: four 2-grams, three 3-grams
  EXPECT_NEAR(ngram_entropy("all words differ in this"), 2.0 / 3 + 2 * std::log2(3) / 3, 1e-12);
}

TEST(TfIdfVectors, CompareTextsByTheVocabularyAlone) {
  const TfIdf tfidf({1, 2, 3}, {{"paris", 0}, {"rome", 1}, {"málaga", 2}});
  EXPECT_NEAR(*tfidf.cosine("Paris, rome: ROME", "rome paris rome (x)"), 1, 1e-12);
  EXPECT_NEAR(*tfidf.cosine("Paris", "PARIS and Rome"), 1 / std::sqrt(5), 1e-12);
  EXPECT_NEAR(*tfidf.cosine("MÁLAGA rome", "rome"), 2 / std::sqrt(13), 1e-12);
  EXPECT_EQ(*tfidf.cosine("paris", "rome"), 0);
  EXPECT_EQ(tfidf.cosine("paris", "nothing known"), std::nullopt);
}

TEST(TfIdfVectors, RefuseAVocabularyOfOtherColumns) {
  const testing::TempDir folder;
  std::string idf("\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 67);
  idf.resize(127, ' ');
  write_text_file(folder / "idf.npy", idf + "\n" + std::string(8, '\0'));
  for (const char* vocabulary : {"[]", "{", "{\"a\": 1}", "{\"a\": \"0\"}", "{\"a\": -1}"}) {
    write_text_file(folder / "words.json", vocabulary);
    EXPECT_THROW(TfIdf::open(folder / "idf.npy", folder / "words.json"), ConfigError) << vocabulary;
  }
  write_text_file(folder / "words.json", "{\"a\": 0}");
  EXPECT_EQ(TfIdf::open(folder / "idf.npy", folder / "words.json").cosine("aa", "a"), std::nullopt);
}

}  // namespace
}  // namespace lancet
