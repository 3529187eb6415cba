// Keys of config.json that neither transformers nor lancet reads.
// Defined in model_config.cpp.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// Returns the keys of a config.json (a text that parse_model_config() accepts) that have a value but that
/// transformers' class for the model_type ignores. `ignored_keys`: keys that the user has declared harmless; they are
/// not returned.
std::vector<std::string> unread_keys(std::string_view config_json, std::span<const std::string> ignored_keys);

/// Gives one warning that names the keys; none if there are no keys.
void warn_of_unread_keys(const std::filesystem::path& file, std::span<const std::string> keys);

}  // namespace lancet
