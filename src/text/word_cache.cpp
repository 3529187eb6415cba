#include "word_cache.h"

namespace lancet {

bool WordCache::find(std::string_view word, std::vector<WordToken>& out) const {
  if (word.size() > kLongestWord) return false;
  const std::lock_guard lock(mutex_);
  const auto found = words_.find(word);
  if (found == words_.end()) return false;
  out.insert(out.end(), found->second.begin(), found->second.end());
  return true;
}

void WordCache::keep(std::string_view word, const std::vector<WordToken>& tokens) {
  if (word.size() > kLongestWord) return;
  const std::lock_guard lock(mutex_);
  if (words_.size() >= kMostWords) words_.clear();
  words_.emplace(word, tokens);
}

}  // namespace lancet
