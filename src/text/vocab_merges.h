// Reads vocab.json and merges.txt, from the time of GPT-2: they have only pieces and merges. The pattern, the
// normalisation and the special tokens, which a tokenizer.json also has, come from the tokenizer's class and from
// tokenizer_config.json.
#pragma once

#include <filesystem>

#include "lancet/tokenizer_files/tokenizer_json.h"

namespace lancet {

/// Loads a tokenizer from `folder`. The class is the tokenizer_class in tokenizer_config.json, else the one that
/// belongs to the model_type in config.json: GPT-2's (GPT-2, GPT-J) or Qwen2's (Qwen2, 2.5, 3). Throws: TokenizerError
/// for another class or none, for a special token whose id no file has, and for files that are not understood or do not
/// fit each other.
TokenizerJson load_vocab_and_merges(const std::filesystem::path& folder);

}  // namespace lancet
