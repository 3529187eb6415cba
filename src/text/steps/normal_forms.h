// Unicode's normal forms, and where they change a text. The tables are libutf8proc's.
// Source: Unicode Standard Annex 15. Equal to Hugging Face's for characters that both know.
#pragma once

#include <string_view>
#include <vector>

#include "lancet/tokenizer_files/tokenizer_steps.h"
#include "normalized_text.h"

namespace lancet {

/// Returns the changes in order, none next to nothing: what lies between them has the form already. Each is a character
/// with its marks, the smallest stretch that nothing beside it acts upon. `text` is valid UTF-8. O(n log n), and O(n)
/// where n bytes are ASCII (for NFC: below U+0300).
std::vector<TextChange> normal_form_changes(std::string_view text, NormalForm form);

}  // namespace lancet
