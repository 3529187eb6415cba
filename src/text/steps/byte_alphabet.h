// The spelling of bytes in byte-level BPE: each of the 256 bytes is one printable character ("Ġ" is the space). Source:
// bytes_to_unicode in GPT-2's encoder.py, whose table Hugging Face tokenizers also has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lancet {

/// Returns "ĠÃ©" for " é": one character for each byte.
std::string spell_bytes(std::string_view bytes);

/// Returns the bytes of a spelling (valid UTF-8); nullopt if it has a character that is no byte's.
std::optional<std::string> read_spelling(std::string_view spelling);

}  // namespace lancet
