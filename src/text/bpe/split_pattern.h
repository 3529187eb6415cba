// Cuts text into the words that byte-level BPE merges: a regular expression's matches, and what lies between them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lancet {

class SplitPattern {
 public:
  /// Throws: TokenizerError "where: ..." for a pattern that cannot be read or may match nothing.
  SplitPattern(std::string_view pattern, std::string_view where);

  /// Appends where each piece of text[begin, end) ends, `end` last. The piece is all that the pattern sees: look-ahead
  /// does not go beyond. `text` is valid UTF-8, begin and end lie between characters. Thread-safe.
  void cut(std::string_view text, size_t begin, size_t end, std::vector<size_t>& ends) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// The ends of the pieces when each pattern cuts the pieces of the one before it.
std::vector<size_t> cut_text(std::string_view text, std::span<const SplitPattern> patterns);

}  // namespace lancet
