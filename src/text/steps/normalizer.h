// What a tokenizer.json's normalizer does to a stretch of text.
// Source: Hugging Face tokenizers, normalizers/.
#pragma once

#include <span>

#include "lancet/tokenizer_files/tokenizer_steps.h"
#include "normalized_text.h"

namespace lancet {

/// Runs the steps one after another. Throws: TokenizerError where the text grows beyond all use.
void normalize(std::span<const NormalizerStep> steps, NormalizedText& text);

}  // namespace lancet
