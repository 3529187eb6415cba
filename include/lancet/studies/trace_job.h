// `lancet trace`: causal traces of a model's facts. Protocol: docs/trace.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/requests/request.h"
#include "lancet/runtime/communicator.h"
#include "lancet/tracing/trace_summary.h"

namespace lancet {

/// What to do with facts whose true answer is in the file but is not what the model predicts.
enum class UnknownFacts { kLeaveOut, kKeep };

struct TraceJob {
  std::filesystem::path model;
  std::filesystem::path facts;  ///< a request file, or records with `attribute`; empty: use `prompt` and `subject`
  RequestRange range;
  std::string prompt;
  std::string subject;
  std::filesystem::path out;
  UnknownFacts unknown = UnknownFacts::kLeaveOut;
  TraceOptions options;         ///< the job sets `noise`
  std::optional<double> noise;  ///< nullopt: 3 times the standard deviation of the embeddings of the file's subjects
  RunOptions run;
};

/// A traced fact.
struct ReportedFact {
  std::string id;
  std::string prompt;
  std::string subject;
  std::optional<std::string> target_true;
  std::string object;               ///< text of the predicted token
  std::vector<std::string> tokens;  ///< tokens of the prompt, as text
  TracedFact traced;
  FactTrace trace;
};

struct TraceReport {
  std::vector<ReportedFact> facts;
  int64_t unknown = 0;  ///< number of facts that were left out
  TraceOptions options;
  double embedding_deviation = 0;  ///< standard deviation of the embeddings of the tokens of the file's subjects
  TraceSummary summary;
  int64_t n_layers = 0;
  std::string content_hash;
  std::string dtype;
  double seconds = 0;  ///< seconds of tracing only
};

/// Collective. Traces the facts; every rank passes the same job. Root writes the folder, which appears complete or not
/// at all. Throws: ConfigError, CheckpointError, TokenizerError, PlacementError; CollectiveError when another rank
/// failed.
TraceReport run_trace_job(const TraceJob& job, Communicator& communicator);

/// Return the texts of trace.json and trace.csv. Schema: docs/trace.md.
std::string to_json(const TraceReport& report, const TraceJob& job);
std::string to_csv(const TraceReport& report);
/// Returns the heat map of a kind, given by its index in the options: for one fact by token, for several facts averages
/// by token class.
std::string to_svg(const TraceReport& report, size_t kind);

}  // namespace lancet
