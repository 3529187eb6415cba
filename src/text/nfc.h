// Unicode's canonical composition (NFC), and where it changes a text. The tables are libutf8proc's.
// Source: Unicode Standard Annex 15. Equal to Hugging Face's NFC for characters that both know.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// The bytes [begin, end) of a text, which NFC spells `text`.
struct NfcChange {
  size_t begin = 0;
  size_t end = 0;
  std::string text;
};

/// Returns the changes in order, none next to nothing: what lies between them is NFC already. Each is a character with
/// its marks, the smallest stretch that nothing beside it acts upon. `text` is valid UTF-8. O(n log n), and O(n) where
/// n bytes are below U+0300.
std::vector<NfcChange> nfc_changes(std::string_view text);

}  // namespace lancet
