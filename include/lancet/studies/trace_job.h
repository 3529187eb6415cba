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

/// What becomes of facts whose true answer the file says and the model does not predict.
enum class UnknownFacts { kLeaveOut, kKeep };

struct TraceJob {
  std::filesystem::path model;
  std::filesystem::path facts;  ///< a request file, or records with `attribute`; empty: `prompt` and `subject`
  RequestRange range;
  std::string prompt;
  std::string subject;
  std::filesystem::path out;
  UnknownFacts unknown = UnknownFacts::kLeaveOut;
  TraceOptions options;         ///< `noise` is found by the job
  std::optional<double> noise;  ///< nullopt: 3 times the deviation of the file's subjects' embeddings
  RunOptions run;
};

/// A fact as it was traced.
struct ReportedFact {
  std::string id;
  std::string prompt;
  std::string subject;
  std::optional<std::string> target_true;
  std::string object;               ///< the predicted token's text
  std::vector<std::string> tokens;  ///< tokens of the prompt, as text
  TracedFact traced;
  FactTrace trace;
};

struct TraceReport {
  std::vector<ReportedFact> facts;
  int64_t unknown = 0;  ///< facts that were left out
  TraceOptions options;
  double embedding_deviation = 0;  ///< deviation of the file's subjects' tokens
  TraceSummary summary;
  int64_t n_layers = 0;
  std::string content_hash;
  std::string dtype;
  double seconds = 0;  ///< seconds of tracing alone
};

/// Collective: every rank with the same job. Root writes the folder, which appears complete or not at all.
/// Throws: ConfigError, CheckpointError, TokenizerError, PlacementError; CollectiveError when another rank failed.
TraceReport run_trace_job(const TraceJob& job, Communicator& communicator);

/// trace.json, trace.csv. Schema: docs/trace.md.
std::string to_json(const TraceReport& report, const TraceJob& job);
std::string to_csv(const TraceReport& report);
/// The heat map of a kind, by its place in the options: of one fact its tokens, of several the averages by class.
std::string to_svg(const TraceReport& report, size_t kind);

}  // namespace lancet
