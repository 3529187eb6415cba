// UTF-8 as the tokenizers need it: strict validity, white space, and bytes that may not be text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "lancet/core/utf8.h"

namespace lancet {

/// Byte position of the first byte that is not part of valid UTF-8.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// Throws: TokenizerError with the byte position.
void require_utf8(std::string_view text);

/// Length of the character that begins with `lead`, in text that is known to be valid.
size_t utf8_bytes(char lead);

/// Unicode's White_Space property.
bool is_white_space(char32_t code_point);

/// Valid characters as they are, U+FFFD for each byte that is not part of one.
std::string replace_invalid_utf8(std::string_view bytes);

/// Replaces likewise, but writes one U+FFFD for all bytes with which a character begins and breaks off (Unicode,
/// "maximal subpart").
std::string replace_broken_utf8(std::string_view bytes);

}  // namespace lancet
