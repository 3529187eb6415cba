// vocab.json and merges.txt, of GPT-2's time: pieces and merges alone. What a tokenizer.json says besides (pattern,
// normalisation, special tokens) comes from the tokenizer's class and from tokenizer_config.json.
#pragma once

#include <filesystem>

#include "lancet/tokenizer_files/tokenizer_json.h"

namespace lancet {

/// Loads a tokenizer from `folder`. The class is tokenizer_config.json's tokenizer_class, else that of config.json's
/// model_type: GPT-2's (GPT-2, GPT-J) or Qwen2's (Qwen2, 2.5, 3). Throws: TokenizerError for another class or none, a
/// special token whose id no file says, and files that cannot be understood or do not fit each other.
TokenizerJson load_vocab_and_merges(const std::filesystem::path& folder);

}  // namespace lancet
