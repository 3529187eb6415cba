// A checkpoint's chat template as a program, with what it is given of the checkpoint.
#pragma once

#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "lancet/jinja/jinja_template.h"
#include "lancet/text/chat_template.h"

namespace lancet {

/// The Jinja text, and the file it is from.
struct ChatTemplateText {
  std::string jinja;
  std::filesystem::path file;
};

/// nullopt: the folder has none.
std::optional<ChatTemplateText> find_chat_source(const std::filesystem::path& folder);

/// Special tokens by their roles, as transformers hands them to templates: bos_token, eos_token, and so on.
JinjaDataMap chat_tokens(const std::filesystem::path& folder);

/// The time that templates are told: now, or SOURCE_DATE_EPOCH where it is set, so that a run can be made again.
std::tm chat_time();

}  // namespace lancet
