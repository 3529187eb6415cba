// One UTF-8 character after another, strictly.
#pragma once

#include <cstddef>
#include <string_view>

namespace lancet {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  ///< 0: no valid code point begins here
};

/// No surrogates, no overlong forms, nothing above U+10FFFF. `at`: within `text`.
CodePoint decode_utf8_at(std::string_view text, size_t at);

/// How long a character is that begins with `lead`; 0: none does.
size_t announced_utf8_bytes(char lead);

}  // namespace lancet
