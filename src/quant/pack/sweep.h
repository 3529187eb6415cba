// From a matrix to codes and scales: all columns for themselves, or one after another with the errors made good.
#pragma once

#include "scale_grid.h"

namespace lancet {

/// What is packed: [out, in] of f32 or f64, and what the file has, f32 (undefined: no such thing).
struct Matrices {
  Tensor weight = {};
  Tensor before = {};
};

/// Codes [in, out] u8 of each number for itself; finds the scales of `grid`.
Tensor round_columns(const Matrices& matrices, const NumberLine& line, ScaleGrid& grid);

struct RoundedColumns {
  Tensor codes;   ///< [in, out] u8
  Tensor errors;  ///< [in, out] f64, of the weight less its numbers
};

/// Rounds with errors made good: `factor` is feedback_factor()'s.
RoundedColumns round_with_feedback(const Matrices& matrices, const NumberLine& line, ScaleGrid& grid,
                                   const Tensor& factor);

}  // namespace lancet
