// Runs the normalizer of a tokenizer.json on a stretch of text. Source: Hugging Face tokenizers, normalizers/.
#pragma once

#include <span>

#include "lancet/tokenizer_files/tokenizer_steps.h"
#include "normalized_text.h"

namespace lancet {

/// Runs the steps one after another. Throws: TokenizerError if the text becomes too long.
void normalize(std::span<const NormalizerStep> steps, NormalizedText& text);

}  // namespace lancet
