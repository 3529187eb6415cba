// Second moments that memit, EasyEdit or AlphaEdit computed: the files `{module}_float32_mom2_{samples}.npz` of their
// layer_stats. Source: memit, util/runningstats.py (SecondMoment, CombinedStat): `mom2.mom2` is the sum of k k^T,
// `mom2.count` the number of k.
#pragma once

#include <cstdint>
#include <filesystem>

#include "lancet/statistics/covariance.h"

namespace lancet {

/// Checks what can be checked without reading the matrix, and returns the number of tokens. `size`: the size of the
/// edited layer's keys (d_ffn). Throws: CheckpointError that names file and key when the file is not an .npz, a key is
/// missing or has another type or the shape of another model, or there are fewer tokens than `size` (C would be
/// singular).
int64_t check_moments(const std::filesystem::path& path, int64_t size);

/// Reads E[k k^T], f64, on the host, symmetric to the last bit. Throws: CheckpointError as check_moments(), and when
/// the values are not a second moment: not finite, a negative diagonal, or asymmetric by more than rounding.
Covariance import_moments(const std::filesystem::path& path, int64_t size);

}  // namespace lancet
