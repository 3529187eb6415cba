// Second moments that memit, EasyEdit or AlphaEdit computed: `{module}_float32_mom2_{samples}.npz` of their
// layer_stats. Source: memit, util/runningstats.py (SecondMoment, CombinedStat): `mom2.mom2` is the sum of k k^T,
// `mom2.count` the number of k.
#pragma once

#include <cstdint>
#include <filesystem>

#include "lancet/statistics/covariance.h"

namespace lancet {

/// What can be told without reading the matrix. `size`: of the edited layer's keys (d_ffn). Throws: CheckpointError
/// naming file and key when the file is no .npz, a key is missing, of another type or of another model's shape, or the
/// tokens are fewer than `size` (C would be singular). Returns the tokens.
int64_t check_moments(const std::filesystem::path& path, int64_t size);

/// E[k k^T], f64, on the host, symmetric to the last bit. Throws: CheckpointError as check_moments(), and when the
/// values are no second moment: not finite, a negative diagonal, not symmetric but for rounding.
Covariance import_moments(const std::filesystem::path& path, int64_t size);

}  // namespace lancet
