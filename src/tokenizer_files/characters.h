// Classes of characters that tokenizers use.
#pragma once

namespace lancet {

/// Whether the character is part of a word in the sense of Rust's regex crate (\w): letters, marks, digits, numbers
/// that are letters, connectors, joiners.
bool is_word_character(char32_t code_point);

}  // namespace lancet
