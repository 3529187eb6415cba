// Turns pieces back into text with the decoder of a tokenizer.json. Source: Hugging Face tokenizers, decoders/.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/tokenizer_files/tokenizer_steps.h"

namespace lancet {

/// Runs the steps over the pieces, and joins the result. Throws: TokenizerError if a step makes more text than any real
/// decoder.
std::string decode_pieces(std::span<const DecoderStep> steps, std::vector<std::string> pieces);

}  // namespace lancet
