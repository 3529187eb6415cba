// What a packed matrix has of tensors that are of several.
#pragma once

#include "lancet/quant_formats/packed_spec.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// The matrix's numbers in a whole tensor of one of its parts, [rows, ...]: a view. A tensor of its own is returned as
/// it is.
Tensor slice_of(const Tensor& stored, const PackedSpec& spec);

/// Likewise of the one matrix that the slice is of, [rows, ...].
Tensor slice_of_matrix(const Tensor& matrix, const PackedSpec& spec);

}  // namespace lancet
