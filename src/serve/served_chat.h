// How chats are wrapped for the served model.
#pragma once

#include <optional>
#include <string>

#include "lancet/serve/page_server.h"
#include "lancet/text/chat_template.h"

namespace lancet {

struct ServedChat {
  std::optional<ChatTemplate> chat = {};
  std::string why_none = {};  ///< what is wrong with the checkpoint's template, where `chat` is empty
};

/// The template of the command line, else the checkpoint's. Throws: ConfigError for one of the command line without {}.
ServedChat find_chat(const ServeOptions& options);

}  // namespace lancet
