// How byte-level BPE writes bytes down as text: each of the 256 as one printable character ("Ġ" is the space).
// Source: bytes_to_unicode of GPT-2's encoder.py, whose table Hugging Face tokenizers has as well.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lancet {

/// " é" -> "ĠÃ©": a character for each byte.
std::string spell_bytes(std::string_view bytes);

/// The bytes that `spelling` stands for; nullopt when it (valid UTF-8) has a character that stands for none.
std::optional<std::string> read_spelling(std::string_view spelling);

}  // namespace lancet
