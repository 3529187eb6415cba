// `lancet eval` and `lancet stats`: parts of an edit job on their own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/job/job_config.h"
#include "lancet/outcome/statistics_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// A server that was measured in place of a model in memory.
struct MeasuredServer {
  std::string address = {};
  std::string kind = {};
  std::string version = {};
  std::string model = {};                                              ///< name that it gives the model
  std::string adapter = {};                                            ///< that was asked; empty: none by name
  std::vector<std::pair<std::string, std::string>> not_measured = {};  ///< protocol, or "side_effects" -> why
};

struct EvalReport {
  std::vector<EditRequest> requests;
  SkippedRecords skipped;
  Evaluation evaluation;
  std::string content_hash;  ///< hash of the model; empty: a server was measured
  std::filesystem::path baseline_folder;
  std::optional<Evaluation> baseline;  ///< evaluation of the same questions, on another model
  std::string baseline_hash;
  std::optional<MeasuredServer> server;
};

/// Collective. Measures the job's requests on the model as it is; every rank gets the whole. `baseline`: a model that
/// is measured first and compared with, one model in memory at a time; empty: none. Throws: ConfigError for a baseline
/// with another tokenizer, or another head when a KL is asked for.
EvalReport run_eval_job(const JobConfig& job, const std::filesystem::path& baseline, Communicator& communicator);
std::string to_json(const EvalReport& report, const JobConfig& job);

/// Collective. Puts what the job's editor needs into root's cache: covariances and their factors. The report is root's,
/// empty elsewhere.
StatisticsReport run_statistics_job(const JobConfig& job, Communicator& communicator);
std::string to_json(const StatisticsReport& report);

}  // namespace lancet
