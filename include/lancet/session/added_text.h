// What a model adds to a prompt, as text, while its tokens come and at their end.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// Returns what the text of `ids` has behind `beginning`, the text of their first ones, which may read otherwise where
/// it ends within a character.
std::string added_text(const Tokenizer& tokenizer, std::span<const TokenId> ids, std::string_view beginning);

/// Returns how many bytes of `text` stand before characters at its end that are not whole yet.
size_t whole_bytes(std::string_view text);

}  // namespace lancet
