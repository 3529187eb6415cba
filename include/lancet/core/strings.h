// Text helpers for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lancet {

/// Appends what a stream would print: without one where it is text or a whole number, which it is nearly always.
template <typename Part>
void append_text(std::string& text, const Part& part) {
  if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    text += std::string_view(part);
  } else if constexpr (std::is_same_v<Part, char>) {
    text += part;
  } else if constexpr (std::is_integral_v<Part> && sizeof(Part) > 1) {
    text += std::to_string(part);
  } else {
    std::ostringstream out;
    out << part;
    text += std::move(out).str();
  }
}

/// Everything in one string: cat("layer ", 3, " of ", 8).
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  (append_text(text, parts), ...);
  return text;
}

/// "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// "[4096, 14336]".
std::string shape_text(std::span<const int64_t> shape);

/// "14.7 MB": powers of 1000, one decimal.
std::string bytes_text(uint64_t bytes);

/// "14.7 GiB": powers of 1024, one decimal.
std::string binary_bytes_text(uint64_t bytes);

/// The number that all of `text` is, digits after a minus sign perhaps; nullopt otherwise, or beyond 64 bits.
std::optional<int64_t> parse_whole_number(std::string_view text);

/// Bytes of "80GiB", "1.5 TiB", "20GB", "512MB", "4096B"; nullopt for what is no positive number with one of the units
/// B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
std::optional<int64_t> parse_bytes(std::string_view text);

/// White space of ASCII.
inline constexpr std::string_view kAsciiWhiteSpace = " \t\n\r\f\v";

/// Whether the text has nothing but white space.
bool is_blank(std::string_view text);

/// The parts between separators, without the blanks around them: "a, b" -> {"a", "b"}.
std::vector<std::string> split(std::string_view text, char separator);

/// Returns at most `longest_bytes` of `text`, never cut inside a UTF-8 character; "..." follows where something is
/// missing.
std::string excerpt(std::string_view text, size_t longest_bytes);

/// The text as a field of a CSV line (RFC 4180): in quotes where it has to be.
std::string csv_field(std::string_view text);

/// The candidate that a misspelt `word` most likely meant (edit distance <= 1 + length / 3); empty when none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// Figures and texts as people read them, everywhere alike: counts and shares in sentences, texts in tables.

/// "1,200".
std::string count_text(size_t count);

/// "1 request", "1,200 requests".
std::string counted(size_t count, std::string_view what);

/// "54.5 %".
std::string percent(double share);

/// Three digits: "0.00412", "12.3", "1.5e+09".
std::string short_number(double number);

/// "54.5 %, expected at least 90 %": a share that missed its threshold, with as many digits as that takes.
std::string shortfall_text(double share, double threshold);

/// A text of the user's or the model's as csv_field() has it; after a ' where a spreadsheet would run it as a formula
/// (it begins with = + - @, a tab or a carriage return).
std::string csv_text(std::string_view text);

// One UTF-8 character after another, strictly.

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  ///< 0: no valid code point begins here
};

/// No surrogates, no overlong forms, nothing above U+10FFFF. `at`: within `text`.
CodePoint decode_utf8_at(std::string_view text, size_t at);

/// How long a character is that begins with `lead`; 0: none does.
size_t announced_utf8_bytes(char lead);

/// Byte position of the first byte that is not part of valid UTF-8.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// Whether the byte is no later part of a character.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

size_t count_characters(std::string_view text);

/// Bytes of the first `count` characters; all of the text's where it has fewer.
size_t bytes_of_characters(std::string_view text, size_t count);

// Text of files and models on its way to a person: a terminal must not obey it.

/// The text with every control character but line breaks and tabs, and every mark that turns the direction of writing,
/// spelt out as JSON does ("\u001b"), so that a JSON document stays the same document. A byte that is no UTF-8 becomes
/// U+FFFD.
std::string visible_text(std::string_view text);

/// Bytes of `text` before a last character whose end is still missing: what visible_text() can be given by itself.
size_t whole_characters(std::string_view text);

}  // namespace lancet
