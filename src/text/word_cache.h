// The tokens of words that came before: a text has few different ones. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bpe_model.h"

namespace lancet {

class WordCache {
 public:
  /// Appends the tokens of `word` to `out`, if they are known.
  bool find(std::string_view word, std::vector<WordToken>& out) const;
  /// Keeps them. Long words do not come again, so they are not kept; a full cache begins anew.
  void keep(std::string_view word, const std::vector<WordToken>& tokens);

 private:
  static constexpr size_t kMostWords = 1 << 16;
  static constexpr size_t kLongestWord = 64;  // bytes

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::vector<WordToken>, StringHash, std::equal_to<>> words_;
};

}  // namespace lancet
