// The report of an edit job: everything that was done and measured. report.json is made from it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/editing/edit_outcome.h"
#include "lancet/eval/evaluate.h"
#include "lancet/io/output_folder.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/journal/journal.h"
#include "lancet/outcome/batch_report.h"
#include "lancet/outcome/edit_verdicts.h"
#include "lancet/outcome/statistics_report.h"
#include "lancet/pages/report_page.h"

namespace lancet {

/// The loss from bringing an edited weight back into a quantised format.
struct RequantisedWeight {
  std::string name;
  /// ||E K|| / ||D K||, where E is the quantisation error, D the edit, and K the keys of all requests so far.
  double edit_lost = 0;
  /// Square root of tr(E C E^T) / tr(W C W^T), where C are the keys' second moments and W is the edited weight.
  /// nullopt: no statistics.
  std::optional<double> text_error = {};
};

/// A batch in the output's journal, possibly from an earlier job.
struct JournalBatch {
  std::string when = {};
  std::string method = {};
  size_t edits = 0;
};

/// What a run did and measured. report.json is made from it.
struct EditReport {
  std::vector<EditRequest> requests;
  std::string request_format;  ///< format of the request file; empty: the requests are in the job file
  SkippedRecords skipped;
  std::vector<std::string> at_odds;  ///< facts that occur twice, contradict each other, or contradict earlier edits
  std::vector<std::string> contexts;
  EditOutcome outcome;
  std::vector<ChosenOption> chosen;  ///< options that the statistics chose, then those that the outcome has
  std::vector<BatchReport> batches;  ///< batches in the order in which they were edited
  std::string stopped;               ///< why the stream ended before its last batch; empty: it ran to its end
  int64_t resumed_batches = 0;       ///< number of first batches that an interrupted run had already finished
  int64_t earlier_edits = 0;         ///< number of edits by the jobs that continue_from builds on
  Evaluation before;
  Evaluation after;
  StandingMeasure standing;                                    ///< measure of `evaluate.standing`
  std::vector<std::pair<std::string, RoundingLoss>> rounding;  ///< losses per edited weight, by name
  std::vector<RequantisedWeight> requantised;                  ///< weights of `output.format: quantised`
  std::string output_format;                                   ///< "checkpoint"
  std::string measured_on;                                     ///< in which form the weights were measured
  StatisticsReport statistics;
  std::string base_hash;
  std::string model_dtype;         ///< type of weights and activations in the run
  std::string devices;             ///< devices of every rank
  std::vector<Verdict> verdicts;   ///< verdicts by request
  std::vector<std::string> unmet;  ///< thresholds of `accept:` that were missed; empty: none
  std::vector<StageCost> stages;   ///< costs in order; seconds are those of root, even if another rank is slower
  int64_t ranks = 1;
  std::vector<JournalBatch> journal = {};  ///< batches whose edits are in force; empty: no history was kept
  std::vector<UndoEntry> undone = {};      ///< undos in the journal

  /// Returns the measures of each batch's requests right after it, added up over all batches; empty if a batch was not
  /// measured.
  Tallies right_after() const;
};

/// Returns the text of report.json. Schema: docs/report.md.
std::string to_json(const EditReport& report, const ResolvedJob& job);

// A report as files: the JSON, the resolved job, and pages and tables for people.

inline constexpr OutputKind kEditOutput{"edit"};
inline constexpr const char* kReportFile = "report.json";

/// Returns the run in the form in which `lancet report` later finds it in the folder.
RunDocument run_document(const EditReport& report, const ResolvedJob& job, std::string label);

/// Writes report.json, job.yaml, report.html, metrics.csv and requests.csv. Throws: CheckpointError when the disk
/// refuses.
void write_report_files(const RunDocument& run, const std::filesystem::path& folder);

/// Writes comparison.html.
void write_comparison(std::span<const RunDocument> runs, const std::string& title, const std::filesystem::path& folder);

}  // namespace lancet
