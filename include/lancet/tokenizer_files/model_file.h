// Files of a model's tokenizer.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lancet {

/// False only where nothing of that name is: reading it tells what is wrong with it.
bool has_model_file(const std::filesystem::path& file);

/// `what` names the role ("tokenizer"). Throws: TokenizerError with the cause.
std::string read_model_file(const std::filesystem::path& file, std::string_view what);

}  // namespace lancet
