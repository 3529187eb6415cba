// Blocks of GGUF files to numbers as chains of tensor operations, for devices other than the host. Each operation
// rounds once, so the numbers are those of the decoders in decoders.h, to the bit.
#pragma once

#include <string_view>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Whether there is a chain for the type. Types whose codes are places in a table have none.
bool has_tensor_decoder(std::string_view type);

/// `bytes` [n, bytes of a block] u8 -> `out` [n, numbers of a block] f32, contiguous, on the same device. Takes beside
/// them at most 4 bytes a number. Nothing waits for the device. Throws: std::logic_error for a type without a chain.
void decode_with_tensors(std::string_view type, const Tensor& bytes, const Tensor& out);

}  // namespace lancet
