// `lancet compare`: several methods edit the same requests of one model, each from the unedited weights, and are
// measured alike. No model is written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/job/job_config.h"
#include "lancet/runtime/communicator.h"
#include "lancet/studies/compared_run.h"
#include "lancet/studies/finished_runs.h"

namespace lancet {

/// One of the job's `compare:` sections as edit jobs of their own, one for each seed.
struct ComparedMethod {
  std::string label;
  std::vector<JobConfig> jobs;  ///< alike but for run.seed, which grows by 1; at least one

  const JobConfig& job() const { return jobs.front(); }
};

struct CompareConfig {
  std::vector<ComparedMethod> methods;  ///< alike but for the editor; at least one
  std::vector<ExpectedFigures> expected;
  ConfigTree resolved;

  const JobConfig& first() const { return methods.front().job(); }
  int64_t seeds() const { return static_cast<int64_t>(methods.front().jobs.size()); }
};

/// `labels`: those of `compare:` that are run; empty: all, in the job's order. Throws: ConfigError with every problem.
CompareConfig parse_compare_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                                std::span<const std::string> labels);

struct MethodResult {
  std::vector<ComparedRun> runs;  ///< by seed, on root; of a method that came to no end none
  std::string error;              ///< why it came to no end; empty: it did
};

struct CompareReport {
  std::vector<MethodResult> methods;  ///< results, as in the configuration
  Evaluation before;
  std::string base_hash;
  int64_t requests = 0;

  bool all_succeeded() const;
  bool measures_success() const;
  /// Whether the runs of each method have the same figures, whatever their seed. On root.
  bool seeds_change_nothing() const;
};

/// Collective: every rank with the same jobs. The model is loaded, and measured before, once. A method that ends in a
/// NumericError is noted, and the others still run. Each run that ends is kept in `kept` until the output is whole, and
/// is taken from there by a later call with the same job. The output folder, which root writes, appears complete, or
/// not at all: compare.json, comparison.html, job.yaml, and LABEL/ with the report of each method that came to its end,
/// of several seeds LABEL/seed-S/. Throws: as run_edit_job().
CompareReport run_compare_job(const CompareConfig& config, Communicator& communicator, KeptRuns kept = {});

/// compare.json. Schema: docs/report.md.
std::string to_json(const CompareReport& report, const CompareConfig& config);

/// A published figure beside the one that was found.
struct ExpectedFigure {
  std::string label;
  std::string metric;
  double published = 0;  ///< a share in [0, 1]
  std::optional<double>
      here;  ///< share found after all edits; nullopt: the method came to no end, or nothing was asked of it
};

/// Returns the figures of the job's `expect:` whose methods were run, in its order.
std::vector<ExpectedFigure> beside_published(const CompareReport& report, const CompareConfig& config);

/// "memit", of several seeds "memit, seed 3".
std::string run_name(const CompareConfig& config, const ComparedMethod& method, uint64_t seed);
/// Folder of a run's report below the output: "memit", of several seeds "memit/seed-3".
std::string run_folder(const CompareConfig& config, const ComparedMethod& method, uint64_t seed);

}  // namespace lancet
