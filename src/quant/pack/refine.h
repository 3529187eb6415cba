// Codes that are chosen again, when the errors of all columns are known.
#pragma once

#include "lancet/quant/pack.h"
#include "sweep.h"

namespace lancet {

/// Goes through all columns `options.sweeps` times and gives each the codes that are best beside all other columns' as
/// they stand: coordinate descent on trace(E (H + damping I) E^T), which no step makes larger (QuantEase, Behdin et al.
/// 2023, arXiv 2309.01885). Scales stay. `rounded` is round_with_feedback()'s, H `importance` [in, in]. Takes another
/// matrix of f64 like the weight.
void refine_codes(RoundedColumns& rounded, const Matrices& matrices, const NumberLine& line, const ScaleGrid& grid,
                  const Tensor& importance, const PackOptions& options);

}  // namespace lancet
