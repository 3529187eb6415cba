// What is looked for in a text: a text itself, or a regular expression as tokenizer.json spells it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// Half-open range of bytes.
struct TextPiece {
  size_t begin = 0;
  size_t end = 0;
};

class TextPattern {
 public:
  /// A regular expression in Oniguruma's syntax (pattern_syntax.h says how much of it). Throws: TokenizerError
  /// "where: ..." for one that cannot be read.
  static TextPattern regex(std::string_view pattern, std::string_view where);
  /// `text` itself, which is not empty.
  static TextPattern literal(std::string_view text);

  /// The matches in order. None overlaps another one. An expression may match nothing at a place (`x*`), then the match
  /// is empty; it never is directly behind another match, as in the tokenizers library. `text` is all that the pattern
  /// sees, and is valid UTF-8. Thread-safe. Throws: TokenizerError when the expression takes too many steps.
  std::vector<TextPiece> matches(std::string_view text) const;

 private:
  class Compiled;

  std::string literal_;
  std::shared_ptr<const Compiled> compiled_;  ///< null: the literal
};

}  // namespace lancet
