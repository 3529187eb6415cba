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

/// Of a job whose editor needs statistics of text. At most `most_bytes` of weights are read. What the edit itself would
/// fail at, such as weights or a corpus that are not there, is nothing in the cache.
CachedStatistics find_cached_statistics(const JobConfig& job, uint64_t most_bytes);
/// The same of a model that is open, whose weights may all be read.
CachedStatistics find_cached_statistics(const JobConfig& job, const ModelFiles& files);

}  // namespace lancet
