// Finds out, without loading a model, whether the statistics of an edit are in the cache.
#pragma once

#include <cstdint>

#include "lancet/job_setup/resolved_job.h"
#include "lancet/models/model_files.h"

namespace lancet {

enum class CachedStatistics {
  kMissing,
  kThere,
  kNotLookedFor  ///< files of the right kind exist; checking that they belong to the model would take too long
};

/// Looks for the statistics of a job whose editor needs some from text. Reads at most `most_bytes` of weights. If
/// something fails that the edit itself would fail at, such as missing weights or a missing corpus, the answer is
/// kMissing.
CachedStatistics find_cached_statistics(const ResolvedJob& job, uint64_t most_bytes);
/// Looks for the statistics of a job whose model is open; it may read all of the model's weights.
CachedStatistics find_cached_statistics(const ResolvedJob& job, const ModelFiles& files);

}  // namespace lancet
