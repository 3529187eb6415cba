// What Hugging Face's configuration adds to a SentencePiece model.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "lancet/text/tokenizer.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "lancet/tokenizer_files/tokenizer_json.h"

namespace lancet {

struct SentencePieceTokens {
  /// Split out of the text as it is, the longest first; what lies between them is encoded stretch by stretch.
  std::vector<AddedToken> added;
  /// Which stretches have the model's dummy prefix, if it has one: every (transformers' `legacy`), the text's first, or
  /// none (add_prefix_space: false).
  PrependScheme prefix = PrependScheme::kAlways;
};

/// Throws: TokenizerError, also when two added tokens have one id.
std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::filesystem::path& tokenizer_model,
                                                        SentencePieceOptions options, SentencePieceTokens tokens);

}  // namespace lancet
