// Reads a JSON file of the user.
#pragma once

#include <filesystem>
#include <string_view>

#include "lancet/core/strict_json.h"

namespace lancet {

/// Calls read_text_file() and parse_strict_json(). Throws: ConfigError "what: path: ...".
nlohmann::json read_json_file(const std::filesystem::path& path, std::string_view what);

}  // namespace lancet
