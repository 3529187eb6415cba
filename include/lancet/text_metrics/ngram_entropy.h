// How varied a text is.
#pragma once

#include <string_view>

namespace lancet {

/// Computes H2 / 3 + 2 H3 / 3 in bits, where Hn is the entropy of the text's n-grams of words (word_tokens). A text of
/// fewer than n words has Hn = 0. The value is low for a text that repeats itself. Source: the generation entropy of
/// ROME (arXiv 2202.05262), with the weights of memit's code.
double ngram_entropy(std::string_view text);

}  // namespace lancet
