// The text of a folder's chat template. Defined in chat_program.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lancet {

/// Returns chat_template.jinja, or chat_template in tokenizer_config.json (if there are several, the one named
/// "default"); nullopt: the folder has none. Throws: TokenizerError for files that cannot be read.
std::optional<std::string> chat_template_text(const std::filesystem::path& folder);

}  // namespace lancet
