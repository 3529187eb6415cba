// How a byte-level BPE cuts a text into words, by the name that llama.cpp has for it (tokenizer.ggml.pre): the file has
// no pattern. Names and patterns are facts of llama.cpp's list and of the models' own tokenizer.json.
// Sources: llama.cpp, src/llama-vocab.cpp; the published tokenizer.json of the models.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lancet {

/// Steps, before the bytes of each word are spelled.
struct PreTokenizer {
  std::string_view name;          ///< "llama-bpe"
  std::string_view pattern = {};  ///< cuts the text; empty: GPT-2's
  bool cuts_digits = false;       ///< each digit stands alone, before the pattern
  bool has_nfc = false;           ///< Unicode's form NFC comes first
  bool ignores_merges = false;    ///< a word that is a piece is taken whole
  bool adds_bos = false;          ///< where the file does not say it
  /// All steps of the pre_tokenizer in tokenizer.json, where a pattern before the bytes is not enough.
  std::string_view steps = {};
};

/// Returns the first one for which `is_it` holds; nullptr: there is none.
const PreTokenizer* find_pre_tokenizer_if(const std::function<bool(const PreTokenizer&)>& is_it);

/// nullptr: it is not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

/// "llama-bpe, qwen2, ...".
std::string pre_tokenizer_names();

}  // namespace lancet
