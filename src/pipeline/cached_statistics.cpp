#include "lancet/pipeline/cached_statistics.h"

#include <functional>
#include <limits>

#include "lancet/core/error.h"
#include "lancet/pipeline/job_statistics.h"
#include "lancet/plan/model_session.h"

namespace lancet {
namespace {

CachedStatistics look(const ResolvedJob& job, const ModelFiles& files, uint64_t most_bytes) {
  if (!JobStatistics::may_be_cached(job, files.config)) return CachedStatistics::kMissing;
  if (files.checkpoint.tensor_bytes() > most_bytes) return CachedStatistics::kNotLookedFor;
  const JobStatistics statistics(job, files, alone());
  return statistics.is_cached(files.checkpoint) ? CachedStatistics::kThere : CachedStatistics::kMissing;
}

/// Returns what `look` finds. If it throws an error, the cache counts as empty.
CachedStatistics missing_where_it_fails(const std::function<CachedStatistics()>& look) {
  try {
    return look();
  } catch (const ConfigError&) {
  } catch (const CheckpointError&) {
  } catch (const TokenizerError&) {
  }
  return CachedStatistics::kMissing;
}

}  // namespace

CachedStatistics find_cached_statistics(const ResolvedJob& job, uint64_t most_bytes) {
  return missing_where_it_fails([&] { return look(job, open_model(job.model, job.ignore_config_keys), most_bytes); });
}

CachedStatistics find_cached_statistics(const ResolvedJob& job, const ModelFiles& files) {
  return missing_where_it_fails([&] { return look(job, files, std::numeric_limits<uint64_t>::max()); });
}

}  // namespace lancet
