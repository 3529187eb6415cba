// Finds the added tokens of a tokenizer in a text: leftmost first, and of those that begin there the longest.
// Source: Hugging Face tokenizers, tokenizer/added_vocabulary.rs.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "added_token.h"

namespace lancet {

/// A stretch of the text: an added token, or (null) text between two.
struct TextPart {
  const AddedToken* token = nullptr;
  size_t begin = 0;
  size_t end = 0;
};

class AddedTokenFinder {
 public:
  /// Looks for `pattern` and reports `token`, which outlives the finder.
  void add(std::string pattern, const AddedToken& token);

  /// The parts in order; together they are the text, except that white space a token takes may lie in two.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct Pattern {
    std::string text;
    const AddedToken* token;
  };
  const Pattern* longest_at(std::string_view text, size_t at) const;

  std::array<std::vector<Pattern>, 256> by_first_byte_;  // the longest first
};

}  // namespace lancet
