// The one tensor type. Headers include this and no other part of torch (ATen/core/Tensor.h costs 2 s a file,
// torch/torch.h 19 s).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lancet/core/dtype.h"

namespace lancet {

using at::Tensor;

/// Throws: CheckpointError for the stored types that no part of a weight can have here (F8_E5M2, unsigned integers).
at::ScalarType to_scalar_type(DType dtype);
/// Throws: std::logic_error for types that safetensors lacks.
DType to_dtype(at::ScalarType type);

/// Positions, as index_select takes them: int64 on `device`.
Tensor to_index(const std::vector<int64_t>& positions, at::Device device);
/// All numbers of a tensor of any type, on any device, in the order of a contiguous one.
std::vector<double> to_doubles(const Tensor& values);

}  // namespace lancet
