// The numbers of a short vector that config.json says.
#pragma once

#include <vector>

#include "lancet/gguf/gguf_file.h"

namespace lancet {

/// Throws: CheckpointError for another tensor than a vector of F32 of at most 16,384 numbers.
std::vector<float> small_numbers(const GgufFile& file, const GgufTensor& tensor);

}  // namespace lancet
