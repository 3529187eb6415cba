// Quantises a matrix in full precision as the formats' own programs do, to the bit.
#pragma once

#include <string>

#include "lancet/quant/packed_matrix.h"

namespace lancet {

enum class Quantiser {
  kInt8,   ///< bitsandbytes' int8: each row by its largest number
  kNf4,    ///< bitsandbytes' nf4: blocks of 64 of the flattened matrix, scales in f32. An even number of columns
  kFloat8  ///< E4M3, one f32 scale a row: its largest number / 448
};

/// "int8", "nf4", "fp8".
std::string_view quantiser_name(Quantiser quantiser);

/// `weight` [out, in] of a floating type, on any device, where the result is too. `name`: of the weight, for messages.
/// Takes, until it returns, 12 bytes a number of at most 2^23 numbers at a time. Waits for the device once.
/// Throws: NumericError for a weight that is not finite; CheckpointError for one that cannot be packed like this.
PackedMatrix quantise(const Tensor& weight, Quantiser quantiser, const std::string& name);

/// PackedMatrix::bytes() of what quantise() makes of such a matrix.
int64_t quantised_bytes(Quantiser quantiser, int64_t rows, int64_t columns);

}  // namespace lancet
