// Quantising a matrix in memory of which each row has a scale.
#pragma once

#include "packed_numbers.h"

namespace lancet {

/// Codes and scales of some rows, or of some of the flattened matrix.
struct RowCodes {
  Tensor codes;
  Tensor scales;
};

/// Codes and scales of `weight` [out, in] of a floating type: `quantise` is asked for as many rows at a time as
/// rows_at_a_time() says, [n, columns] f32, and returns codes [n, columns] of `code_type` and scales [n, 1] f32.
PackedNumbers quantise_rows(const Tensor& weight, at::ScalarType code_type, RowCodes (*quantise)(const Tensor& rows));

}  // namespace lancet
