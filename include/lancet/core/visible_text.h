// Text of files and models on its way to a person: a terminal must not obey it.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// The text with every control character but line breaks and tabs, and every mark that turns the direction of writing,
/// spelt out as JSON does ("\u001b"), so that a JSON document stays the same document. A byte that is no UTF-8 becomes
/// U+FFFD.
std::string visible_text(std::string_view text);

/// Bytes of `text` before a last character whose end is still missing: what visible_text() can be given by itself.
size_t whole_characters(std::string_view text);

}  // namespace lancet
