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

/// Appends what a stream would print. Text and whole numbers, the usual case, are appended without a stream.
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

/// Concatenates all parts: cat("layer ", 3, " of ", 8).
template <typename... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  (append_text(text, parts), ...);
  return text;
}

/// Returns "a, b, c".
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// Returns "[4096, 14336]".
std::string shape_text(std::span<const int64_t> shape);

/// Returns "14.7 MB": powers of 1000, one decimal.
std::string bytes_text(uint64_t bytes);

/// Returns "14.7 GiB": powers of 1024, one decimal.
std::string binary_bytes_text(uint64_t bytes);

/// Parses all of `text` as a whole number: digits, with an optional minus sign. Returns nullopt for other text and for
/// numbers beyond 64 bits.
std::optional<int64_t> parse_whole_number(std::string_view text);

/// Parses a size: "80GiB", "1.5 TiB", "20GB", "512MB", "4096B". Returns nullopt unless it is a positive number with one
/// of the units B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).
std::optional<int64_t> parse_bytes(std::string_view text);

/// The white space of ASCII.
inline constexpr std::string_view kAsciiWhiteSpace = " \t\n\r\f\v";

/// Returns whether the text is empty or only white space.
bool is_blank(std::string_view text);

/// Returns the parts between separators, without spaces around them: "a, b" -> {"a", "b"}.
std::vector<std::string> split(std::string_view text, char separator);

/// Returns at most `longest_bytes` of `text`, never cut inside a UTF-8 character. If text was cut, "..." is added.
std::string excerpt(std::string_view text, size_t longest_bytes);

/// Returns the text as a field of a CSV line (RFC 4180), quoted where necessary.
std::string csv_field(std::string_view text);

/// Returns the candidate that a misspelt `word` most likely means (edit distance <= 1 + length / 3); empty if none is
/// near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// Numbers and texts for people, in the same format everywhere: counts and shares in sentences, texts in tables.

/// Returns "1,200".
std::string count_text(size_t count);

/// Returns "1 request", "1,200 requests".
std::string counted(size_t count, std::string_view what);

/// Returns "54.5 %".
std::string percent(double share);

/// Returns three significant digits: "0.00412", "12.3", "1.5e+09".
std::string short_number(double number);

/// Returns "54.5 %, expected at least 90 %" for a share below its threshold, with as many digits as show the
/// difference.
std::string shortfall_text(double share, double threshold);

/// Returns a text of the user or the model as csv_field() does. Puts a ' before a text that a spreadsheet would run as
/// a formula (one that begins with = + - @, a tab or a carriage return).
std::string csv_text(std::string_view text);

// Strict reading of UTF-8, one character after another.

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  ///< 0: no valid code point begins here
};

/// Decodes the code point at `at`, which must lie within `text`. Rejects surrogates, overlong forms and values above
/// U+10FFFF.
CodePoint decode_utf8_at(std::string_view text, size_t at);

/// Returns how many bytes a character has that begins with `lead`; 0: no character begins with it.
size_t announced_utf8_bytes(char lead);

/// Returns the position of the first byte that is not part of valid UTF-8.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// Returns whether the byte is not a continuation byte of UTF-8.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

size_t count_characters(std::string_view text);

/// Returns the bytes of the first `count` characters; all bytes of `text` if it has fewer characters.
size_t bytes_of_characters(std::string_view text, size_t count);

// Text of files and models that is shown to a person: it must not control the terminal.

/// Escapes every control character but line breaks and tabs, and every mark that changes the direction of writing, as
/// JSON does ("\u001b"), so that a JSON document keeps its meaning. A byte that is not UTF-8 becomes U+FFFD.
std::string visible_text(std::string_view text);

/// Returns how many bytes of `text` come before a last, incomplete character: these can be passed to visible_text().
size_t whole_characters(std::string_view text);

}  // namespace lancet
