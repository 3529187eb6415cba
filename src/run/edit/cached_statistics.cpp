#include "lancet/run/cached_statistics.h"

#include "job_statistics.h"
#include "lancet/core/error.h"

namespace lancet {

CachedStatistics find_cached_statistics(const JobConfig& job, uint64_t most_bytes) {
  try {
    const ModelFiles files = open_model(job.model, job.ignore_config_keys);
    if (!JobStatistics::may_be_cached(job, files.config)) return CachedStatistics::kMissing;
    if (files.checkpoint.tensor_bytes() > most_bytes) return CachedStatistics::kNotLookedFor;
    const JobStatistics statistics(job, files, alone());
    return statistics.is_cached(files.checkpoint) ? CachedStatistics::kThere : CachedStatistics::kMissing;
  } catch (const ConfigError&) {
  } catch (const CheckpointError&) {
  } catch (const TokenizerError&) {
  }
  return CachedStatistics::kMissing;
}

}  // namespace lancet
