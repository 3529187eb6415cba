// How much of a reference a text repeats: ROUGE-L and BLEU.
#pragma once

#include <optional>
#include <string_view>

namespace lancet {

/// Shares of the words that occur in both texts in the same order.
struct RougeL {
  double precision = 0;  ///< share of the text's words
  double recall = 0;     ///< share of the reference's words
  double f1 = 0;         ///< their harmonic mean
};

/// Computes ROUGE-L from the longest common subsequence of words, which are runs of ASCII letters and digits in lower
/// case; nullopt for a reference without words. Source: Lin 2004 (ROUGE, section 3.1), with words as in the package
/// rouge_score, without stemming.
std::optional<RougeL> rouge_l(std::string_view text, std::string_view reference);

/// Computes the BLEU of one text and one reference over their characters: the geometric mean of the precisions of runs
/// of one to four characters, where each run counts at most as often as the reference has it, times exp(1 - reference /
/// text) for a shorter text; 0 if there is no common run of some length. Source: Papineni et al. 2002, equations 1
/// to 3. It uses characters because UnKE's code passes texts to nltk's sentence_bleu, which expects lists of words.
double character_bleu(std::string_view text, std::string_view reference);

}  // namespace lancet
