// Reads stored bytes into tensors on their devices, at the rate of the memory: in parallel, in pieces that stay in the
// processor's cache, without another copy of the model on the host.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

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
