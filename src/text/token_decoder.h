// Pieces back to text by the decoder of a tokenizer.json.
// Source: Hugging Face tokenizers, decoders/.
#pragma once

#include <string>
#include <vector>

#include "lancet/tokenizer_files/tokenizer_json.h"

namespace lancet {

/// Runs the steps over the pieces and joins what is left.
std::string decode_pieces(const std::vector<DecoderStep>& steps, std::vector<std::string> pieces);

}  // namespace lancet
