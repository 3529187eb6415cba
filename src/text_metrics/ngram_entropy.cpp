#include "lancet/text_metrics/ngram_entropy.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/strings.h"
#include "lancet/text_metrics/word_tokens.h"

namespace lancet {
namespace {

double entropy_of(std::span<const std::string> words, size_t n) {
  std::map<std::string, int64_t> counts;
  for (size_t i = 0; i + n <= words.size(); ++i) ++counts[join(words.subspan(i, n), " ")];  // words contain no blanks
  double bits = 0;
  for (const auto& [ngram, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(words.size() - n + 1);
    bits -= share * std::log2(share);
  }
  return bits;
}

}  // namespace

double ngram_entropy(std::string_view text) {
  const std::vector<std::string> words = word_tokens(text);
  return entropy_of(words, 2) / 3 + 2 * entropy_of(words, 3) / 3;
}

}  // namespace lancet
