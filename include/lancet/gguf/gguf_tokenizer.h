// The metadata of a tokenizer, made of a folder's tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/gguf/gguf_writing.h"

namespace lancet {

/// What a folder says of its tokenizer.
struct FolderTokenizer {
  std::string json;   ///< text of tokenizer.json
  std::string where;  ///< its path, for messages
  int64_t rows = 0;   ///< rows of the model's embedding; ids without a token get one that no text has
  std::optional<int64_t> bos = {}, eos = {}, pad = {};
  /// Ids that end an answer beside `eos`.
  std::vector<int64_t> more_ends = {};
  bool adds_bos = false;  ///< BOS stands before every text
  bool adds_eos = false;  ///< EOS stands after it
  std::optional<std::string> chat_template = {};
};

/// Returns the entries tokenizer.ggml.* and tokenizer.chat_template. Throws: CheckpointError for what GGUF cannot say:
/// a way to cut texts that has no name in llama.cpp's list, merges that no scores give, another kind of model, more
/// than three ends of answers, more tokens than rows.
std::vector<GgufEntry> gguf_tokenizer(const FolderTokenizer& tokenizer);

}  // namespace lancet
