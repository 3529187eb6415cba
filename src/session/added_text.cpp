#include "lancet/session/added_text.h"

#include <algorithm>

#include "lancet/core/strings.h"

namespace lancet {

std::string added_text(const Tokenizer& tokenizer, std::span<const TokenId> ids, std::string_view beginning) {
  std::string text = tokenizer.decode(ids);
  text.erase(0, std::min(beginning.size(), text.size()));
  return text;
}

size_t whole_bytes(std::string_view text) {
  while (text.ends_with(kReplacementCharacter)) text.remove_suffix(kReplacementCharacter.size());
  return text.size();
}

}  // namespace lancet
