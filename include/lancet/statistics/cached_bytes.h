// How much of the disk statistics take.
#pragma once

#include <cstdint>

#include "lancet/models/model_config.h"
#include "lancet/spec/statistics_options.h"

namespace lancet {

/// What the cache keeps for one layer: moments in f64, which imported ones need not, and half of that for what solves
/// need.
inline int64_t cached_bytes(const StatisticsOptions& options, KeyShape keys) {
  const int64_t bytes_an_entry = options.from == StatisticsFrom::kImport ? 4 : 12;
  return bytes_an_entry * keys.moments();
}

}  // namespace lancet
