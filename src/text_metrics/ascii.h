// Classes of bytes that do not depend on the locale. Bytes beyond ASCII, which are parts of UTF-8 characters, are in
// none of them.
#pragma once

#include <cctype>

namespace lancet {

inline bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
inline bool is_space(char c) { return is_ascii(c) && std::isspace(static_cast<unsigned char>(c)) != 0; }
inline bool is_punctuation(char c) { return is_ascii(c) && std::ispunct(static_cast<unsigned char>(c)) != 0; }

}  // namespace lancet
