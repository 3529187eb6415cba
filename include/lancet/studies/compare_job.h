// `lancet compare`: several methods edit the same requests of one model, each from the unedited weights, and are
// measured in the same way. No model is written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/runtime/communicator.h"
#include "lancet/studies/compared_run.h"
#include "lancet/studies/finished_runs.h"

namespace lancet {

/// One of the job's `compare:` sections as separate edit jobs, one per seed.
struct ComparedMethod {
  std::string label;
  std::vector<ResolvedJob> jobs;  ///< equal except for run.seed, which grows by 1; at least one

  const ResolvedJob& job() const { return jobs.front(); }
};

struct CompareConfig {
  std::vector<ComparedMethod> methods;  ///< equal except for the editor; at least one
  std::vector<ExpectedFigures> expected;
  ConfigTree resolved;

  const ResolvedJob& first() const { return methods.front().job(); }
  int64_t seeds() const { return static_cast<int64_t>(methods.front().jobs.size()); }
};

/// Parses the job. `labels`: those methods of `compare:` that are to run; empty: all, in the job's order. Throws:
/// ConfigError with every problem.
CompareConfig parse_compare_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                                std::span<const std::string> labels);

struct MethodResult {
  std::vector<ComparedRun> runs;  ///< runs by seed, on root; empty if the method failed
  std::string error;              ///< why the method failed; empty: it finished
};

struct CompareReport {
  std::vector<MethodResult> methods;  ///< results, in the order of the configuration
  Evaluation before;
  std::string base_hash;
  int64_t requests = 0;

  bool all_succeeded() const;
  bool measures_success() const;
  /// Whether the runs of each method have equal figures for all seeds. On root.
  bool seeds_change_nothing() const;
};

/// Collective. Runs the comparison; every rank passes the same jobs. The model is loaded and measured before editing
/// only once. If a method ends in a NumericError, this is recorded and the others still run. Each finished run is kept
/// in `kept` until the output is complete, and a later call with the same job uses it from there. Root writes the
/// output folder, which appears complete or not at all: compare.json, comparison.html, job.yaml, and LABEL/ with the
/// report of each method that finished (with several seeds LABEL/seed-S/). Throws: as run_edit_job().
CompareReport run_compare_job(const CompareConfig& config, Communicator& communicator, KeptRuns kept = {});

/// Returns the text of compare.json. Schema: docs/report.md.
std::string to_json(const CompareReport& report, const CompareConfig& config);

/// A published figure beside the measured one.
struct ExpectedFigure {
  std::string label;
  std::string metric;
  double published = 0;  ///< a share in [0, 1]
  /// Share that was measured after all edits; nullopt: the method failed, or nothing was asked.
  std::optional<double> here;
};

/// Returns the figures of the job's `expect:` whose methods were run, in the order of `expect:`.
std::vector<ExpectedFigure> beside_published(const CompareReport& report, const CompareConfig& config);

/// Returns the name of a run: "memit", or with several seeds "memit, seed 3".
std::string run_name(const CompareConfig& config, const ComparedMethod& method, uint64_t seed);
/// Returns the folder of a run's report below the output: "memit", or with several seeds "memit/seed-3".
std::string run_folder(const CompareConfig& config, const ComparedMethod& method, uint64_t seed);

}  // namespace lancet
