// A search pattern: a literal text, or a regular expression as in tokenizer.json.
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
  /// Compiles a regular expression in Oniguruma's syntax (pattern_syntax.h lists the supported part). Throws:
  /// TokenizerError "where: ..." for one that cannot be read.
  static TextPattern regex(std::string_view pattern, std::string_view where);
  /// Makes a pattern that matches `text` itself, which must not be empty.
  static TextPattern literal(std::string_view text);

  /// Returns the matches in order, without overlaps. An expression may match the empty text (`x*`); such a match is
  /// empty, and as in the tokenizers library it never directly follows another match. The pattern sees only `text`,
  /// which is valid UTF-8. Thread-safe. Throws: TokenizerError when the expression takes too many steps.
  std::vector<TextPiece> matches(std::string_view text) const;

 private:
  class Compiled;

  std::string literal_;
  std::shared_ptr<const Compiled> compiled_;  ///< null: the pattern is the literal
};

}  // namespace lancet
