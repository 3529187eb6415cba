// How much disk space statistics take.
#pragma once

#include <cstdint>

#include "lancet/models/model_config.h"
#include "lancet/spec/statistics_options.h"

namespace lancet {

/// Returns the bytes that the cache keeps for one layer: the moments in f64, except for imported ones, and half as much
/// for what solves need.
inline int64_t cached_bytes(const StatisticsOptions& options, KeyShape keys) {
  const int64_t bytes_an_entry = options.from == StatisticsFrom::kImport ? 4 : 12;
  return bytes_an_entry * keys.moments();
}

}  // namespace lancet
