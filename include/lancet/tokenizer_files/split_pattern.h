// Cuts text into the words that a tokenizer's model sees: a pattern's matches, and the gaps between them.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/tokenizer_files/text_pattern.h"

namespace lancet {

/// What delimiters become. Named as in tokenizer.json.
enum class SplitBehavior {
  kRemoved,             ///< dropped
  kIsolated,            ///< a piece each
  kMergedWithPrevious,  ///< each joins the gap before it
  kMergedWithNext,      ///< each joins the gap behind it
  kContiguous,          ///< those next to each other become one piece
};

/// Which part of a text is the delimiter.
enum class SplitDelimiter {
  kMatches,
  kGaps,  ///< `invert: true`: the pattern matches words, and what lies between them delimits
};

class SplitPattern {
 public:
  SplitPattern(TextPattern pattern, SplitBehavior behavior, SplitDelimiter delimiter = SplitDelimiter::kMatches)
      : pattern_(std::move(pattern)), behavior_(behavior), delimiter_(delimiter) {}

  /// Appends the pieces of text[piece.begin, piece.end), in order. The piece is all that the pattern sees: look-ahead
  /// does not go beyond. `text` is valid UTF-8, and the piece does not cut a character. Thread-safe.
  void cut(std::string_view text, TextPiece piece, std::vector<TextPiece>& out) const;

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  SplitDelimiter delimiter_;
};

/// The pieces of all `pieces`, each cut by `pattern`.
std::vector<TextPiece> cut_pieces(std::string_view text, std::span<const TextPiece> pieces,
                                  const SplitPattern& pattern);

}  // namespace lancet
