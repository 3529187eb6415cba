// The chat template of the served model.
#pragma once

#include <optional>
#include <string>

#include "lancet/serve/page_server.h"
#include "lancet/text/chat_template.h"

namespace lancet {

struct ServedChat {
  std::optional<ChatTemplate> chat = {};
  std::string why_none = {};  ///< what is wrong with the checkpoint's template, if `chat` is empty
};

/// Returns the template of the command line, else the checkpoint's. Throws: ConfigError if the one of the command line
/// has no {}.
ServedChat find_chat(const ServeOptions& options);

}  // namespace lancet
