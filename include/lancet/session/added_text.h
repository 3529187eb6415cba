// The text that a model adds to a prompt, while its tokens arrive and at their end.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// Returns the text of `ids` after `beginning`, the text of the first ids. `beginning` may differ from the start of the
/// whole text if it ends within a character.
std::string added_text(const Tokenizer& tokenizer, std::span<const TokenId> ids, std::string_view beginning);

/// Returns the number of bytes of `text` before any incomplete characters at its end.
size_t whole_bytes(std::string_view text);

}  // namespace lancet
