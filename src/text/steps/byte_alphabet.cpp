#include "byte_alphabet.h"

#include <array>
#include <cstdint>

#include "lancet/tokenizer_files/json_node.h"

namespace lancet {
namespace {

constexpr size_t kCharacters = 0x144;  // all code points are below U+0144

struct Alphabet {
  std::array<std::string, 256> spelling;       // by byte
  std::array<int16_t, kCharacters> byte_of{};  // by code point; -1: it is no byte
};

/// Printable Latin-1 characters are themselves. The other bytes, in order, become U+0100 and the following characters.
Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(-1);
  char32_t next = 0x100;
  for (size_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const char32_t character = printable ? static_cast<char32_t>(byte) : next++;
    std::string& spelling = alphabet.spelling[byte];
    if (character >= 0x80) spelling += static_cast<char>(0xC0 | (character >> 6));
    spelling += static_cast<char>(character < 0x80 ? character : 0x80 | (character & 0x3F));
    alphabet.byte_of[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

const Alphabet& alphabet() {
  static const Alphabet kAlphabet = make_alphabet();
  return kAlphabet;
}

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char byte : bytes) out += alphabet().spelling[static_cast<uint8_t>(byte)];
  return out;
}

std::optional<std::string> read_spelling(std::string_view spelling) {
  std::string out;
  for (size_t at = 0; at < spelling.size();) {
    const CodePoint character = decode_utf8_at(spelling, at);
    if (character.bytes == 0 || character.value >= kCharacters) return std::nullopt;
    const int16_t byte = alphabet().byte_of[character.value];
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(byte);
    at += character.bytes;
  }
  return out;
}

}  // namespace lancet
