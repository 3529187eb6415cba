#include "session_job.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/pipeline/cached_statistics.h"

namespace lancet {
namespace {

constexpr int64_t kMostRequests = 1'000'000;  ///< the largest number for which memory can be planned

ConfigTree names_of(std::span<const std::string_view> protocols) {
  std::vector<ConfigTree> names;
  for (const std::string_view name : protocols) names.push_back(ConfigTree::text(std::string(name)));
  return ConfigTree::list(std::move(names));
}

}  // namespace

ResolvedJob parse_session(const CompletedJob& completed) {
  ConfigTree tree = completed.tree;
  if (tree.kind == ConfigTree::Kind::kMap && tree.find("evaluate") == nullptr)
    tree.set("evaluate", names_of(kSessionProtocols));
  return parse_job(tree, completed.source.base, completed.source.name, JobPurpose::kSession);
}

Workload planned_work(const ResolvedJob& job, const ModelFiles& files, int64_t n_requests) {
  if (n_requests < 1 || n_requests > kMostRequests)
    throw ConfigError(cat("planned requests: expected 1 to ", kMostRequests, ", got ", n_requests));
  std::vector<std::string> assumptions;  // `lancet plan` shows them
  Workload work = edit_work(job, files.config, {.n_requests = n_requests}, assumptions);
  const bool takes_text = job.needs.statistics && job.statistics && job.statistics->takes_text();
  if (!takes_text || find_cached_statistics(job, files) != CachedStatistics::kThere) return work;
  return without_text(std::move(work));
}

}  // namespace lancet
