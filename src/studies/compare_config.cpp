// A comparison has an edit job for each label of `compare:` (with that section as its editor) and for each seed.
#include <algorithm>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/studies/compare_job.h"

namespace lancet {
namespace {

std::vector<std::string> labels_of(const ConfigTree& tree) {
  std::vector<std::string> labels;
  if (const ConfigTree* compare = tree.find("compare"))
    for (const auto& [label, section] : compare->entries) labels.push_back(label);
  return labels;
}

/// Returns the chosen names. Throws: ConfigError if one does not exist, or occurs twice.
std::vector<std::string> chosen(const std::vector<std::string>& known, std::span<const std::string> asked) {
  if (asked.empty()) return known;
  std::set<std::string> seen;
  for (const std::string& label : asked) {
    if (std::find(known.begin(), known.end(), label) == known.end()) {
      const std::string near = nearest(label, known);
      throw ConfigError(cat("--methods: '", label, "': expected methods, or labels of the job's compare: ", join(known),
                            near.empty() ? "" : cat(". Did you mean ", near, "?")));
    }
    if (!seen.insert(label).second) throw ConfigError(cat("--methods: '", label, "' stands there twice"));
  }
  return {asked.begin(), asked.end()};
}

/// Returns the job with another seed, and with all else the same.
ResolvedJob with_seed(ResolvedJob job, uint64_t seed) {
  job.run.seed = seed;
  ConfigTree run = *job.resolved.find(JobSpec::kRun.key);
  run.set(std::string(RunSpec::kSeed.key), ConfigTree::number(static_cast<int64_t>(seed)));
  job.resolved.set(std::string(JobSpec::kRun.key), std::move(run));
  return job;
}

}  // namespace

CompareConfig parse_compare_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                                std::span<const std::string> labels) {
  CompareConfig config;
  // finds every problem, and gives its place in the whole job
  ResolvedJob whole = parse_job(tree, base, source, JobPurpose::kCompare);
  config.resolved = std::move(whole.resolved);
  config.expected = std::move(whole.expected);
  for (const std::string& label : chosen(labels_of(tree), labels)) {
    ConfigTree job = tree;
    job.set("editor", *tree.find("compare")->find(label));
    for (const char* key : {"compare", "seeds"}) job.erase(key);
    ComparedMethod method{.label = label, .jobs = {}};
    method.jobs.push_back(parse_job(job, base, source, JobPurpose::kEdit));
    for (int64_t i = 1; i < whole.seeds; ++i)
      method.jobs.push_back(with_seed(method.job(), whole.run.seed + static_cast<uint64_t>(i)));
    config.methods.push_back(std::move(method));
  }
  return config;
}

}  // namespace lancet
