// What a tokenizer.json's pre-tokenizer does: a stretch of text becomes words, each of which the model sees alone.
// Source: Hugging Face tokenizers, pre_tokenizers/.
#pragma once

#include <span>
#include <vector>

#include "lancet/tokenizer_files/tokenizer_steps.h"
#include "normalized_text.h"

namespace lancet {

struct WordsOfText {
  NormalizedText text;
  std::vector<TextPiece> words;  ///< in order, none empty
};

/// Runs the steps one after another, each on the words that those before it made. Without steps all is one word.
WordsOfText cut_words(NormalizedText text, std::span<const PreTokenizerStep> steps);

}  // namespace lancet
