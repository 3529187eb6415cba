// The order of a matrix's rows in a GGUF file.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/gguf/gguf_model.h"

namespace lancet {

/// Returns for each row of the tensor in the model's class the file's row that has it. Empty: both have the same order.
/// Expects rows that fits_rows() accepts.
std::vector<int64_t> file_rows(GgufChange change, int64_t rows, const GgufHeads& heads);

/// Whether it changes the order of rows.
bool moves_rows(GgufChange change);

/// Whether so many rows are those of the heads, where the change needs heads.
bool fits_rows(GgufChange change, int64_t rows, const GgufHeads& heads);

}  // namespace lancet
