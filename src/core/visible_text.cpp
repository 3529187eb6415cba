#include "lancet/core/visible_text.h"

#include <array>
#include <cstdio>

#include "lancet/core/utf8.h"

namespace lancet {
namespace {

/// C0 but line break and tab, DEL, C1 (a terminal may take U+009B for ESC [), line and paragraph separators, and the
/// marks that show what follows in another order than it is written.
bool is_obeyed(char32_t value) {
  if (value == '\n' || value == '\t') return false;
  return value < 0x20 || (value >= 0x7F && value < 0xA0) || (value >= 0x2028 && value <= 0x202E) ||
         (value >= 0x2066 && value <= 0x2069);
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = decode_utf8_at(text, at);
    if (next.bytes == 0) {
      out += kReplacementCharacter;
    } else if (is_obeyed(next.value)) {
      std::array<char, 8> spelt{};
      std::snprintf(spelt.data(), spelt.size(), "\\u%04x", static_cast<unsigned>(next.value));
      out += spelt.data();
    } else {
      out += text.substr(at, next.bytes);
    }
    at += next.bytes == 0 ? 1 : next.bytes;
  }
  return out;
}

size_t whole_characters(std::string_view text) {
  constexpr size_t kLongest = 4;
  for (size_t back = 1; back < kLongest && back <= text.size(); ++back) {
    const size_t announced = announced_utf8_bytes(text[text.size() - back]);
    if (announced > back) return text.size() - back;
    if (announced > 0) break;
  }
  return text.size();
}

}  // namespace lancet
