#include "served_chat.h"

#include "lancet/core/error.h"
#include "lancet/gguf/gguf_model.h"

namespace lancet {

ServedChat find_chat(const ServeOptions& options) {
  if (!options.chat_template.empty()) return {.chat = ChatTemplate::by_hand(options.chat_template)};
  try {
    return {.chat = ChatTemplate::of(find_gguf(options.model).value_or(options.model))};
  } catch (const TokenizerError& error) {
    return {.why_none = error.what()};
  }
}

}  // namespace lancet
