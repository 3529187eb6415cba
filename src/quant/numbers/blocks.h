// Blocks of GGUF files to numbers, to the bit as the gguf package's dequantize() has them, in f32.
// Sources: ggml-org/ggml, src/ggml-common.h (blocks); gguf 0.19, quants.py (the order of the products and sums).
#pragma once

#include <cstdint>
#include <span>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// `codes` [n, bytes of a row] u8 -> `out` [n, columns] f32, contiguous, on the same device. On other devices than the
/// host, a chain of operations decodes most types. Blocks of IQ1 to IQ4, TQ1_0, MXFP4 and NVFP4 are decoded on the
/// host, which waits for the device.
void decode_blocks(uint32_t type, const Tensor& codes, const Tensor& out);

/// Decodes contiguous blocks on the host to f32, in the calling thread.
void decode_block_rows(uint32_t type, const uint8_t* codes, std::span<float> out);

/// The largest magnitude; not finite where any number is not.
double largest_of_blocks(uint32_t type, const Tensor& codes, int64_t columns);

}  // namespace lancet
