// The one tensor type. Headers include this and no other part of torch (ATen/core/Tensor.h costs 2 s a file,
// torch/torch.h 19 s).
#pragma once

#include <ATen/core/Tensor.h>

#include "lancet/core/dtype.h"

namespace lancet {

using at::Tensor;

/// Throws: CheckpointError for the stored types that no weight can have here (F8, unsigned integers).
at::ScalarType to_scalar_type(DType dtype);
/// Throws: std::logic_error for types that safetensors lacks.
DType to_dtype(at::ScalarType type);

}  // namespace lancet
