// A stretch of text as the model sees it. For each of its bytes it has the original bytes from which it comes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/tokenizer_files/text_pattern.h"

namespace lancet {

/// The output of normalizers and decoders is at most this many times as long as their input, plus kAlwaysRoom bytes.
/// Real ones make text at most three times as long: a space becomes "▁".
inline constexpr size_t kMostGrowth = 16;
inline constexpr size_t kAlwaysRoom = 65536;

/// A replacement of the bytes [begin, end) of a text by `text`.
struct TextChange {
  size_t begin = 0;
  size_t end = 0;
  std::string text;
};

class NormalizedText {
 public:
  /// The bytes [begin, end) of `text`, unchanged.
  NormalizedText(std::string_view text, size_t begin, size_t end);

  const std::string& text() const { return text_; }
  NormalizedText slice(size_t begin, size_t end) const;

  /// Returns the original bytes of [begin, end). Inserted text (a dummy prefix) has none.
  TextPiece origin(size_t begin, size_t end) const;
  /// Returns the original position of the first byte. The text must not be empty.
  size_t origin_begin() const { return origin_of(0).begin; }

  /// Has no effect on an empty text.
  void prepend(std::string_view prefix);
  /// Replaces each of `places`, which are in order, by `content`. An empty place is a position at which it is inserted.
  void replace(std::span<const TextPiece> places, std::string_view content);
  /// Applies changes, which are in order and do not overlap. The new text of a change comes from all the text that it
  /// replaces.
  void change(std::span<const TextChange> changes);
  /// Replaces bytes by the characters of their spelling.
  void spell();
  /// Appends `more`.
  void append(const NormalizedText& more);

 private:
  class Rewriting;

  NormalizedText() = default;

  TextPiece origin_of(size_t at) const;  // origin of the whole character that contains the byte
  void write_origins();
  /// Throws: TokenizerError if the text would become longer than any text needs.
  void require_room(size_t added) const;

  std::string text_;
  size_t first_ = 0;               // original position of text_, while nothing is changed
  size_t most_ = 0;                // largest number of bytes of text_
  std::vector<TextPiece> origin_;  // one for each byte of text_ after a change; empty before
};

}  // namespace lancet
