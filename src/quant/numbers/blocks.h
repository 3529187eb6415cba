// Blocks of GGUF files to numbers, to the bit as the gguf package's dequantize() has them, in f32.
// Sources: ggml-org/ggml, src/ggml-common.h (blocks); gguf 0.19, quants.py (the order of the products and sums).
#pragma once

#include <cstdint>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// `codes` [n, bytes of a row] u8 -> `out` [n, columns] f32, contiguous, on the same device. Waits for the device
/// where that is not the host: blocks are decoded there.
void decode_blocks(uint32_t type, const Tensor& codes, const Tensor& out);

/// The largest magnitude; not finite where any number is not.
double largest_of_blocks(uint32_t type, const Tensor& codes, int64_t columns);

}  // namespace lancet
