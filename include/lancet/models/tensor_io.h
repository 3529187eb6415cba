// Conversion between stored bytes and tensors. Defined in weight_loader.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lancet/checkpoint/sealed_file.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// The stored bytes as a tensor on the host, without a copy where the file's alignment allows it; keeps the mapping
/// alive. Only to be read. Throws: CheckpointError for types that no weight can have.
Tensor to_tensor(const TensorView& view);

/// Bytes of a contiguous tensor on the host, borrowed: the tensor outlives the source. Throws: std::logic_error
/// otherwise.
TensorSource to_source(std::string name, const Tensor& tensor);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Tensors on any device, of any layout, as a file that is read back; see write_sealed(). Returns its hash.
std::string write_tensors(const std::filesystem::path& path, const SealedFormat& format, const NamedTensors& tensors,
                          const Metadata& facts);

/// The hash of the file that write_tensors() would write.
std::string hash_of_tensors(const SealedFormat& format, const NamedTensors& tensors, const Metadata& facts);

/// All of the file's, in its order, checked, on the host in memory of their own. Throws: CheckpointError as
/// SealedFile::read(), and for types that no tensor can have.
NamedTensors load_tensors(const SealedFile& file);

}  // namespace lancet
