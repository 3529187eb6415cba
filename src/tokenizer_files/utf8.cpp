#include "lancet/tokenizer_files/utf8.h"

#include <cstdint>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// How many bytes at `at`, where no valid character is, could begin one if others followed; at least 1.
size_t broken_bytes(std::string_view text, size_t at) {
  // The smallest character with these first bytes, and the largest: one of them is valid if any is.
  for (const size_t length : {size_t{3}, size_t{2}}) {
    if (at + length > text.size() || length >= utf8_bytes(text[at])) continue;
    for (const char filler : {'\x80', '\xBF'}) {
      std::string whole(text.substr(at, length));
      whole.resize(utf8_bytes(text[at]), filler);
      if (decode_utf8_at(whole, 0).bytes != 0) return length;
    }
  }
  return 1;
}

std::string replace_by(std::string_view bytes, size_t (*broken)(std::string_view text, size_t at)) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = decode_utf8_at(bytes, at).bytes;
    if (length == 0) {
      out += kReplacementCharacter;
      at += broken(bytes, at);
    } else {
      out += bytes.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = decode_utf8_at(text, at).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

void require_utf8(std::string_view text) {
  if (const auto at = first_invalid_utf8(text)) {
    throw TokenizerError(
        cat("text to tokenise: byte ", *at, " of ", text.size(), ": not valid UTF-8; convert the text to UTF-8 first"));
  }
}

size_t utf8_bytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  return replace_by(bytes, [](std::string_view, size_t) { return size_t{1}; });
}

std::string replace_broken_utf8(std::string_view bytes) { return replace_by(bytes, broken_bytes); }

}  // namespace lancet
