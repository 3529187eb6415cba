// Hugging Face's additional settings for a SentencePiece model.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "lancet/text/tokenizer.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "lancet/tokenizer_files/tokenizer_json.h"

namespace lancet {

struct SentencePieceTokens {
  /// Tokens that are split out of the original text, the longest first. The stretches between them are encoded one by
  /// one.
  std::vector<AddedToken> added;
  /// Which stretches get the model's dummy prefix, if it has one: every stretch (transformers' `legacy`), only the
  /// text's first, or none (add_prefix_space: false).
  PrependScheme prefix = PrependScheme::kAlways;
};

/// Throws: TokenizerError, also if two added tokens have the same id.
std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::filesystem::path& tokenizer_model,
                                                        SentencePieceOptions options, SentencePieceTokens tokens);

}  // namespace lancet
