// `lancet compare`: several methods edit the same requests of one model, each from the unedited weights, and are
// measured alike. No model is written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// One of the job's `compare:` sections as an edit job of its own.
struct ComparedMethod {
  std::string label;
  JobConfig job;
};

struct CompareConfig {
  std::vector<ComparedMethod> methods;  ///< alike but for the editor; at least one
  std::vector<ExpectedFigures> expected;
  ConfigTree resolved;
};

/// `labels`: those of `compare:` that are run; empty: all, in the job's order. Throws: ConfigError with every problem.
CompareConfig parse_compare_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                                std::span<const std::string> labels);

struct MethodResult {
  EditReport report;
  std::string error;  ///< why the method came to no end; empty: it did
};

struct CompareReport {
  std::vector<MethodResult> methods;  ///< results, as in the configuration
  Evaluation before;
  std::string base_hash;
  int64_t requests = 0;

  bool all_succeeded() const;
  bool measures_success() const;
};

/// Collective: every rank with the same jobs. The model is loaded, and measured before, once. A method that ends in a
/// NumericError is noted, and the others still run. The output folder, which root writes, appears complete, or not at
/// all: compare.json, comparison.html, job.yaml, and LABEL/ with the report of each method that came to its end.
/// Throws: as run_edit_job().
CompareReport run_compare_job(const CompareConfig& config, Communicator& communicator);

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

/// Returns the seconds of editing per request, of a method in a table.
double seconds_per_edit(const EditReport& report);

}  // namespace lancet
