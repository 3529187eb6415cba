// `lancet eval` and `lancet stats`: parts of an edit job that run alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/outcome/statistics_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// A server that was measured in place of a model in memory.
struct MeasuredServer {
  std::string address = {};
  std::string kind = {};
  std::string version = {};
  std::string model = {};    ///< the server's name of the model
  std::string adapter = {};  ///< adapter that was asked; empty: no adapter was named
  std::vector<std::pair<std::string, std::string>> not_measured = {};  ///< protocol, or "side_effects" -> why
};

struct EvalReport {
  std::vector<EditRequest> requests;
  SkippedRecords skipped;
  Evaluation evaluation;
  std::string content_hash;  ///< hash of the model; empty: a server was measured
  std::filesystem::path baseline_folder;
  std::optional<Evaluation> baseline;  ///< evaluation of another model on the same questions
  std::string baseline_hash;
  std::optional<MeasuredServer> server;
};

/// Collective. Measures the job's requests on the model without editing it; every rank gets the whole result.
/// `baseline`: another model that is measured first for comparison, with one model in memory at a time; empty: none.
/// Throws: ConfigError for a baseline with another tokenizer, or with another head when a KL is requested.
EvalReport run_eval_job(const JobConfig& job, const std::filesystem::path& baseline, Communicator& communicator);
std::string to_json(const EvalReport& report, const JobConfig& job);

/// Collective. Puts what the job's editor needs into root's cache: covariances and their factors. Returns the report on
/// root, and an empty one elsewhere.
StatisticsReport run_statistics_job(const ResolvedJob& job, Communicator& communicator);
std::string to_json(const StatisticsReport& report);

}  // namespace lancet
