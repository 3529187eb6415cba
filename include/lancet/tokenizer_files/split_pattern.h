// Cuts text into the words that a tokenizer's model processes: the matches of a pattern, and the gaps between them.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/tokenizer_files/text_pattern.h"

namespace lancet {

/// What happens to delimiters, with the names of tokenizer.json.
enum class SplitBehavior {
  kRemoved,             ///< dropped
  kIsolated,            ///< each becomes a piece
  kMergedWithPrevious,  ///< each is joined to the gap before it
  kMergedWithNext,      ///< each is joined to the gap after it
  kContiguous,          ///< adjacent ones become one piece
};

/// Which parts of a text are delimiters.
enum class SplitDelimiter {
  kMatches,
  kGaps,  ///< `invert: true`: the pattern matches words, and the text between them is the delimiter
};

class SplitPattern {
 public:
  SplitPattern(TextPattern pattern, SplitBehavior behavior, SplitDelimiter delimiter = SplitDelimiter::kMatches)
      : pattern_(std::move(pattern)), behavior_(behavior), delimiter_(delimiter) {}

  /// Appends the pieces of text[piece.begin, piece.end), in order. The pattern sees only this piece, so look-ahead does
  /// not go beyond it. `text` is valid UTF-8, and the piece does not cut a character. Thread-safe.
  void cut(std::string_view text, TextPiece piece, std::vector<TextPiece>& out) const;

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  SplitDelimiter delimiter_;
};

/// Cuts each of `pieces` by `pattern` and returns all resulting pieces.
std::vector<TextPiece> cut_pieces(std::string_view text, std::span<const TextPiece> pieces,
                                  const SplitPattern& pattern);

}  // namespace lancet
