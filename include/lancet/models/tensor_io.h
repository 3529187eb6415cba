// Conversion between stored bytes and tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/checkpoint/safetensors.h"
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

// Reading into tensors on their devices, at the rate of the memory: in parallel, in pieces that stay in the processor's
// cache, without another copy of the model on the host.

/// What to read, and where to.
struct TensorRead {
  TensorView stored;
  at::Device device;
  at::ScalarType dtype;
  Tensor place = {};  ///< place for the numbers, contiguous, of that type and device; undefined: new memory
};

/// One tensor for each read, contiguous, of memory of its own or at its place: what later becomes of the files does not
/// matter. Converted on the device where the types differ. `on_bytes` is told the stored bytes read so far, by this
/// thread. Throws: CheckpointError for types that no weight can have, and for files that cannot be read.
std::vector<Tensor> read_tensors(std::span<const TensorRead> reads, const std::function<void(int64_t)>& on_bytes);

/// A tensor of the host, with its strides, on `device`: through page-locked memory, since a GPU fetches other memory at
/// a third of the rate or less. Large matrices go this way. Already there, or on the host: the tensor itself.
Tensor upload(const Tensor& tensor, at::Device device);

}  // namespace lancet
