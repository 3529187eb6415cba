// Between stored bytes and tensors.
#pragma once

#include <string>

#include "lancet/io/safetensors.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// The stored bytes as a tensor on the host, without a copy where the file's alignment allows it; keeps the mapping
/// alive. Only to be read. Throws: CheckpointError for types that no weight can have.
Tensor to_tensor(const TensorView& view);

/// Bytes of a contiguous tensor on the host, borrowed: the tensor outlives the source. Throws: std::logic_error
/// otherwise.
TensorSource to_source(std::string name, const Tensor& tensor);

}  // namespace lancet
