#include "word_model.h"

#include <utility>

#include "bpe_model.h"
#include "lancet/core/strings.h"
#include "unigram_model.h"

namespace lancet {

std::unique_ptr<WordModel> make_word_model(std::variant<BpeSpec, UnigramSpec> spec, const std::string& where) {
  if (auto* unigram = std::get_if<UnigramSpec>(&spec))
    return std::make_unique<UnigramModel>(std::move(*unigram), where);
  return std::make_unique<BpeModel>(std::get<BpeSpec>(std::move(spec)), where);
}

std::string byte_piece(size_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return cat("<0x", kDigits[byte >> 4], kDigits[byte & 15], ">");
}

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
