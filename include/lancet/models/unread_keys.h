// Keys of config.json that neither transformers nor lancet reads.
// Defined in model_config.cpp.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// Of a text that parse_model_config() reads: keys that say something, and that transformers' class for its model_type
/// ignores. `ignored_keys`: keys that the user vouches for, who needs no word of them.
std::vector<std::string> unread_keys(std::string_view config_json, std::span<const std::string> ignored_keys);

/// One warning that names them; none where there are none.
void warn_of_unread_keys(const std::filesystem::path& file, std::span<const std::string> keys);

}  // namespace lancet
