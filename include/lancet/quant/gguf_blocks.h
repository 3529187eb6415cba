// Matrices as blocks of a GGUF file, and back.
#pragma once

#include <string>

#include "lancet/gguf/gguf_types.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Types that matrices can be written in: the plain ones, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL and MXFP4.
bool can_encode(const GgufType& type);
std::string encodable_types();

/// `weight` [rows, columns] of a floating type, on any device -> [rows, bytes of a row] u8 on the host. Blocks of Q8_0,
/// Q4_0, Q4_1, Q5_0 and Q5_1 are those of the gguf package (0.19, quants.py), to the bit. Scales of the other types are
/// searched for a small sum of squared errors. Numbers that were decoded from a block are found again, except where a
/// block of Q2_K, Q4_K or Q5_K has a scale or a least number below 0, or a least number far larger than its scale.
/// Throws: CheckpointError for rows that are no whole blocks, and for a type that is not encoded; NumericError for
/// numbers that are not finite or beyond what scales can hold. `name`: of the weight.
Tensor encode_blocks(const Tensor& weight, const GgufType& type, const std::string& name);

/// [rows, bytes of a row] u8 of any type -> [rows, columns] f32 on the host.
Tensor decode_rows_of(const Tensor& bytes, const GgufType& type);

}  // namespace lancet
