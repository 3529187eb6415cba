// tokenizer_config.json, and the older special_tokens_map.json and added_tokens.json: what they say about special
// tokens and the tokenizer's class. Everything else in them (chat templates, lengths) is not the tokenizer's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/tokenizer_files/added_token.h"

namespace lancet {

struct TokenizerConfig {
  std::optional<std::string> tokenizer_class;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> add_prefix_space;
  std::optional<bool> legacy;
  std::vector<AddedToken> added_tokens;  ///< added_tokens_decoder, or added_tokens.json where there is none
  std::vector<AddedToken> named_tokens;  ///< BOS, EOS, UNK, PAD and so on, each once; without ids
};

/// Loads it from `folder`; nothing set where there are no such files. Throws: TokenizerError for a file that cannot be
/// understood.
TokenizerConfig load_tokenizer_config(const std::filesystem::path& folder);

}  // namespace lancet
