// How varied a text is.
#pragma once

#include <string_view>

namespace lancet {

/// H2 / 3 + 2 H3 / 3 in bits, Hn the entropy of the text's n-grams of words (word_tokens); a text of fewer than n words
/// has Hn = 0. Low for a text that repeats itself. Source: generation entropy of ROME (arXiv 2202.05262), as weighted
/// in memit's code.
double ngram_entropy(std::string_view text);

}  // namespace lancet
