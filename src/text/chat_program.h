// A checkpoint's chat template as a program, and the checkpoint's data for it.
#pragma once

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "lancet/jinja/jinja_template.h"
#include "lancet/text/chat_template.h"

namespace lancet {

/// The Jinja text, and the file that has it.
struct ChatTemplateText {
  std::string jinja;
  std::filesystem::path file;
};

/// Returns nullopt if the folder has no template.
std::optional<ChatTemplateText> find_chat_source(const std::filesystem::path& folder);

/// Returns the special tokens by their roles, as transformers gives them to templates: bos_token, eos_token, and so on.
JinjaDataMap chat_tokens(const std::filesystem::path& folder);

/// Returns the time for templates: now, or SOURCE_DATE_EPOCH if it is set, so that a run can be repeated.
std::tm chat_time();

}  // namespace lancet
