// Sets of characters that tokenizers tell apart.
#pragma once

namespace lancet {

/// Whether the character is part of a word, as Rust's regex crate says it (\w): letters, marks, digits, numbers that
/// are letters, connectors, joiners.
bool is_word_character(char32_t code_point);

}  // namespace lancet
