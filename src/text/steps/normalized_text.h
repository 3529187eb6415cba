// A stretch of the text as the model sees it, with the bytes of the text that each of its bytes stands for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/tokenizer_files/text_pattern.h"

namespace lancet {

/// What normalizers and decoders make of a text is at most so many times as long and kAlwaysRoom bytes more. Real ones
/// make it at most three times as long: a space becomes "▁".
inline constexpr size_t kMostGrowth = 16;
inline constexpr size_t kAlwaysRoom = 65536;

/// The bytes [begin, end) of a text, in whose place `text` stands.
struct TextChange {
  size_t begin = 0;
  size_t end = 0;
  std::string text;
};

class NormalizedText {
 public:
  /// The bytes [begin, end) of `text`, not changed yet.
  NormalizedText(std::string_view text, size_t begin, size_t end);

  const std::string& text() const { return text_; }
  NormalizedText slice(size_t begin, size_t end) const;

  /// The original bytes that [begin, end) stands for; what was put in (a dummy prefix) stands for none.
  TextPiece origin(size_t begin, size_t end) const;
  /// Place in the original that the first byte comes from. The text is not empty.
  size_t origin_begin() const { return origin_of(0).begin; }

  /// Nothing happens to an empty text.
  void prepend(std::string_view prefix);
  /// `content` takes the place of each of `places`, which are in order. An empty place is where it is put in.
  void replace(std::span<const TextPiece> places, std::string_view content);
  /// Changes in order, none within another. What is written stands for all that it is written over.
  void change(std::span<const TextChange> changes);
  /// Writes the characters that stand for the bytes.
  void spell();
  /// Puts `more` behind this.
  void append(const NormalizedText& more);

 private:
  class Rewriting;

  NormalizedText() = default;

  TextPiece origin_of(size_t at) const;  // of the whole character that the byte belongs to
  void write_origins();
  /// Throws: TokenizerError where so many bytes more are beyond all growth that a text has use for.
  void require_room(size_t added) const;

  std::string text_;
  size_t first_ = 0;               // where text_ begins in the text, while nothing is changed
  size_t most_ = 0;                // bytes that text_ may come to
  std::vector<TextPiece> origin_;  // one per byte of text_ once something is; empty before
};

}  // namespace lancet
