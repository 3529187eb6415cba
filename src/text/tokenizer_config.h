// tokenizer_config.json: what it says about special tokens. Everything else in it (chat templates, classes) is not the
// tokenizer's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lancet {

struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::vector<std::pair<int64_t, std::string>> added_tokens;  ///< added_tokens_decoder: id and text
};

/// From `folder`/tokenizer_config.json; nothing set where there is no such file.
/// Throws: TokenizerError for a file that cannot be understood.
TokenizerConfig load_tokenizer_config(const std::filesystem::path& folder);

}  // namespace lancet
