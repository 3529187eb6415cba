// Between stored bytes and tensors.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lancet/io/safetensors.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// The stored bytes as a tensor on the host, without a copy where the file's alignment allows it; keeps the mapping
/// alive. Only to be read. Throws: CheckpointError for types that no weight can have.
Tensor to_tensor(const TensorView& view);

/// Bytes of a contiguous tensor on the host, borrowed: the tensor outlives the source. Throws: std::logic_error
/// otherwise.
TensorSource to_source(std::string name, const Tensor& tensor);

/// Tensors on any device, of any layout, as a file that appears complete or not at all; see write_safetensors().
void write_tensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors,
                   const Metadata& metadata);

}  // namespace lancet
