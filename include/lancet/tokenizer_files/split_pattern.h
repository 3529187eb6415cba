// Cuts text into the words that BPE merges: a pattern's matches, and what lies between them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace lancet {

/// Half-open range of bytes.
struct TextPiece {
  size_t begin = 0;
  size_t end = 0;
};

/// What matches and the gaps between them become. Named as in tokenizer.json.
enum class SplitBehavior {
  kIsolated,            ///< a piece each
  kMergedWithPrevious,  ///< a match joins the gap before it
  kRemovedMatches,      ///< matches are dropped
  kRemovedGaps,         ///< gaps are dropped ("Removed", inverted)
};

class SplitPattern {
 public:
  /// A regular expression. Throws: TokenizerError "where: ..." for one that cannot be read or may match nothing.
  static SplitPattern regex(std::string_view pattern, SplitBehavior behavior, std::string_view where);
  /// `text` itself, which is not empty.
  static SplitPattern literal(std::string_view text, SplitBehavior behavior, std::string_view where);

  /// Appends the pieces of text[piece.begin, piece.end), in order. The piece is all that the pattern sees: look-ahead
  /// does not go beyond. `text` is valid UTF-8, and the piece does not cut a character. Thread-safe.
  void cut(std::string_view text, TextPiece piece, std::vector<TextPiece>& out) const;

 private:
  class Compiled;
  SplitPattern(std::shared_ptr<const Compiled> compiled, SplitBehavior behavior);

  std::shared_ptr<const Compiled> compiled_;
  SplitBehavior behavior_;
};

/// The pieces when each pattern cuts the pieces of the one before it.
std::vector<TextPiece> cut_text(std::string_view text, std::span<const SplitPattern> patterns);

}  // namespace lancet
