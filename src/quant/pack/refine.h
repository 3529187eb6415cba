// Codes that are chosen again, when the errors of all columns are known.
#pragma once

#include "sweep.h"

namespace lancet {

/// Goes through all columns `sweeps` times and gives each the codes that are best beside all other columns' as they
/// stand: coordinate descent on trace(E (H + damping I) E^T), which no step makes larger (QuantEase, Behdin et al.
/// 2023, arXiv 2309.01885). Scales stay. `codes` [in, out] as round_with_feedback() left them, H `importance` [in, in].
/// Takes two matrices of f64 like the weight.
void refine_codes(Tensor& codes, const Matrices& matrices, const NumberLine& line, const ScaleGrid& grid,
                  const Tensor& importance, double damping, int64_t sweeps);

}  // namespace lancet
