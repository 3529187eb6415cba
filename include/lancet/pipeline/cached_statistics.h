// Whether an edit finds its statistics in the cache, without a model in memory.
#pragma once

#include <cstdint>

#include "lancet/job/job_config.h"
#include "lancet/models/model_files.h"

namespace lancet {

enum class CachedStatistics {
  kMissing,
  kThere,
  kNotLookedFor  ///< files of the kind are there; whether they are the model's would take too long to see
};

/// Looks for the statistics of a job whose editor needs some of text. At most `most_bytes` of weights are read. What
/// the edit itself would fail at, such as weights or a corpus that are not there, is nothing in the cache.
CachedStatistics find_cached_statistics(const JobConfig& job, uint64_t most_bytes);
/// Looks for the statistics of a job whose model is open, and whose weights may all be read.
CachedStatistics find_cached_statistics(const JobConfig& job, const ModelFiles& files);

}  // namespace lancet
