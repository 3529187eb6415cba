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

/// Returns the stored bytes as a tensor on the host, without a copy if the file's alignment allows it; it keeps the
/// mapping alive. Do not write to it. Throws: CheckpointError for types that no weight can have.
Tensor to_tensor(const TensorView& view);

/// Returns the bytes of a contiguous tensor on the host. They are borrowed: the tensor must outlive the source. Throws:
/// std::logic_error for any other tensor.
TensorSource to_source(std::string name, const Tensor& tensor);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Writes tensors of any device and layout to a file that load_tensors() reads; see write_sealed(). Returns the file's
/// hash.
std::string write_tensors(const std::filesystem::path& path, const SealedFormat& format, const NamedTensors& tensors,
                          const Metadata& facts);

/// Returns the hash of the file that write_tensors() would write.
std::string hash_of_tensors(const SealedFormat& format, const NamedTensors& tensors, const Metadata& facts);

/// Reads and checks all tensors of the file, in its order, into their own memory on the host. Throws: CheckpointError
/// as SealedFile::read(), and for types that no tensor can have.
NamedTensors load_tensors(const SealedFile& file);

// Reads files into tensors on their devices at the speed of the memory: in parallel, in pieces that fit the processor's
// cache, without a second copy of the model on the host.

/// What to read, and the device and type of the result.
struct TensorRead {
  TensorView stored;
  at::Device device;
  at::ScalarType dtype;
  Tensor place = {};  ///< contiguous tensor of that type and device that receives the numbers; undefined: new memory
};

/// Reads one contiguous tensor per entry, into new memory or into its place. The files may change afterwards. If the
/// types differ, the device converts. `on_bytes` receives the number of stored bytes read so far, in this thread.
/// Throws: CheckpointError for types that no weight can have, and for files that cannot be read.
std::vector<Tensor> read_tensors(std::span<const TensorRead> reads, const std::function<void(int64_t)>& on_bytes);

/// Copies a host tensor, with its strides, to `device`. It copies through page-locked memory, because a GPU reads other
/// memory at a third of the speed or less. Use it for large matrices. If the tensor is already there, or `device` is
/// the host, it returns the tensor itself.
Tensor upload(const Tensor& tensor, at::Device device);

}  // namespace lancet
