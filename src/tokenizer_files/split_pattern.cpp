#include "lancet/tokenizer_files/split_pattern.h"

namespace lancet {
namespace {

/// Turns delimiters, and the text between them, into pieces in order. Source: Hugging Face tokenizers,
/// SplitDelimiterBehavior in tokenizer/normalizer.rs.
class SplitPieces {
 public:
  explicit SplitPieces(SplitBehavior behavior) : behavior_(behavior) {}

  void add(TextPiece piece, bool is_delimiter) {
    if (behavior_ == SplitBehavior::kRemoved && is_delimiter) return;
    if (!pieces_.empty() && joins_last(is_delimiter)) {
      pieces_.back().end = piece.end;
    } else {
      pieces_.push_back(piece);
    }
    last_is_delimiter_ = is_delimiter;
  }

  /// Leaves out empty pieces of empty matches, whose only effect is to end the piece before.
  void append_to(std::vector<TextPiece>& out, size_t offset) const {
    for (const TextPiece& piece : pieces_)
      if (piece.begin < piece.end) out.push_back({offset + piece.begin, offset + piece.end});
  }

 private:
  bool joins_last(bool is_delimiter) const {
    switch (behavior_) {
      case SplitBehavior::kMergedWithPrevious:
        return is_delimiter && !last_is_delimiter_;
      case SplitBehavior::kMergedWithNext:
        return !is_delimiter && last_is_delimiter_;
      case SplitBehavior::kContiguous:
        return is_delimiter == last_is_delimiter_;
      case SplitBehavior::kRemoved:
      case SplitBehavior::kIsolated:
        break;
    }
    return false;
  }

  SplitBehavior behavior_;
  std::vector<TextPiece> pieces_;
  bool last_is_delimiter_ = false;
};

}  // namespace

void SplitPattern::cut(std::string_view text, TextPiece piece, std::vector<TextPiece>& out) const {
  const std::string_view seen = text.substr(piece.begin, piece.end - piece.begin);
  const bool matches_delimit = delimiter_ == SplitDelimiter::kMatches;
  SplitPieces pieces(behavior_);
  size_t done = 0;
  for (const TextPiece& match : pattern_.matches(seen)) {
    if (match.begin > done) pieces.add({done, match.begin}, !matches_delimit);
    pieces.add(match, matches_delimit);
    done = match.end;
  }
  if (done < seen.size()) pieces.add({done, seen.size()}, !matches_delimit);
  pieces.append_to(out, piece.begin);
}

std::vector<TextPiece> cut_pieces(std::string_view text, std::span<const TextPiece> pieces,
                                  const SplitPattern& pattern) {
  std::vector<TextPiece> finer;
  for (const TextPiece& piece : pieces) pattern.cut(text, piece, finer);
  return finer;
}

}  // namespace lancet
