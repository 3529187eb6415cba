// Unicode's normal forms, and the places where they change a text. The tables are those of libutf8proc. Source: Unicode
// Standard Annex 15. The results equal Hugging Face's for characters that both know.
#pragma once

#include <string_view>
#include <vector>

#include "lancet/tokenizer_files/tokenizer_steps.h"
#include "normalized_text.h"

namespace lancet {

/// Returns the changes in order. The text between two changes already has the form. Each change is a character with its
/// marks, the smallest stretch that is independent of its neighbours. `text` must be valid UTF-8. O(n log n), and O(n)
/// for n bytes of ASCII (for NFC: below U+0300).
std::vector<TextChange> normal_form_changes(std::string_view text, NormalForm form);

}  // namespace lancet
