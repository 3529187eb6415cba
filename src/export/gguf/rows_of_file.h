// The order of a matrix's rows in a GGUF file.
#pragma once

#include <cstdint>

#include "lancet/gguf/gguf_model.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns the rows in the order that the file has, from the model's order: numbers or encoded bytes [rows, any].
/// Changes nothing but the order, and only for changes that move rows.
Tensor rows_of_file(const Tensor& rows, GgufChange change, const GgufHeads& heads);

}  // namespace lancet
