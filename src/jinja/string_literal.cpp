#include "string_literal.h"

#include <charconv>
#include <cstdio>
#include <stdexcept>

#include "characters.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Writes characters beyond ASCII as escapes, as Jinja does before it reads the others: "\é" is a backslash and "\xe9".
std::string ascii_spelling(std::string_view text) {
  std::string spelt;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8_at(text, at);
    if (point.bytes == 0) throw std::invalid_argument("a text in quotes that is no UTF-8");
    if (point.bytes == 1) {
      spelt += text[at];
    } else {
      const auto value = static_cast<unsigned>(point.value);
      char escape[11];
      std::snprintf(escape, sizeof(escape), value < 0x100 ? "\\x%02x" : value < 0x10000 ? "\\u%04x" : "\\U%08x", value);
      spelt += escape;
    }
    at += point.bytes;
  }
  return spelt;
}

struct ReadNumber {
  char32_t value = 0;
  size_t end = 0;
};

ReadNumber read_hex(std::string_view text, size_t at, size_t digits) {
  const std::string_view part = text.substr(std::min(at, text.size()), digits);
  uint32_t value = 0;
  const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), value, 16);
  if (part.size() != digits || problem != std::errc() || end != part.data() + part.size())
    throw std::invalid_argument(cat("expected ", digits, " hexadecimal digits after \\", text[at - 1]));
  if (value > 0x10FFFF) throw std::invalid_argument("a \\U beyond \\U0010ffff");
  if (value >= 0xD800 && value <= 0xDFFF)
    throw std::invalid_argument("half a surrogate pair (\\ud800 to \\udfff), which no UTF-8 text has");
  return {value, at + digits};
}

ReadNumber read_octal(std::string_view text, size_t at) {
  ReadNumber number{0, at};
  while (number.end < text.size() && number.end < at + 3 && text[number.end] >= '0' && text[number.end] <= '7')
    number.value = number.value * 8 + static_cast<char32_t>(text[number.end++] - '0');
  return number;
}

}  // namespace

std::string read_jinja_literal(std::string_view inside) {
  const std::string text = ascii_spelling(inside);
  constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeant = "\a\b\f\n\r\t\v\\'\"";
  std::string value;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      value += text[at];
      continue;
    }
    if (++at == text.size()) throw std::invalid_argument("a backslash that ends a text");
    const char letter = text[at];
    if (letter == '\n') continue;
    if (const size_t found = kLetters.find(letter); found != std::string_view::npos) {
      value += kMeant[found];
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const ReadNumber number = read_hex(text, at + 1, letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
      append_character(value, number.value);
      at = number.end - 1;
    } else if (letter >= '0' && letter <= '7') {
      const ReadNumber number = read_octal(text, at);
      append_character(value, number.value);
      at = number.end - 1;
    } else if (letter == 'N') {
      throw std::invalid_argument("\\N: lancet knows no characters by name: write \\u and four digits");
    } else {
      value += '\\';
      value += letter;
    }
  }
  return value;
}

}  // namespace lancet
