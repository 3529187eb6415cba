// Runs the pre-tokenizer of a tokenizer.json, which cuts a stretch of text into words. The model sees each word alone.
// Source: Hugging Face tokenizers, pre_tokenizers/.
#pragma once

#include <span>
#include <vector>

#include "lancet/tokenizer_files/tokenizer_steps.h"
#include "normalized_text.h"

namespace lancet {

struct WordsOfText {
  NormalizedText text;
  std::vector<TextPiece> words;  ///< in order, none of them empty
};

/// Runs the steps one after another. Each step cuts the words of the step before it. Without steps, the whole text is
/// one word.
WordsOfText cut_words(NormalizedText text, std::span<const PreTokenizerStep> steps);

}  // namespace lancet
