#include "served_chat.h"

#include "lancet/core/error.h"

namespace lancet {

ServedChat find_chat(const ServeOptions& options) {
  if (!options.chat_template.empty()) return {.chat = ChatTemplate::by_hand(options.chat_template)};
  try {
    return {.chat = ChatTemplate::of(options.model)};
  } catch (const TokenizerError& error) {
    return {.why_none = error.what()};
  }
}

}  // namespace lancet
