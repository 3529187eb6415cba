#include "lancet/core/utf8.h"

#include <cstdint>

namespace lancet {

size_t announced_utf8_bytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  if (byte < 0x80) return 1;
  return byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0;
}

CodePoint decode_utf8_at(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = announced_utf8_bytes(text[at]);
  if (bytes == 0 || at + bytes > text.size()) return {};
  char32_t value = static_cast<char32_t>(lead & (0x7F >> bytes));
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return {};
    value = (value << 6) | (byte & 0x3F);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, bytes};
}

}  // namespace lancet
