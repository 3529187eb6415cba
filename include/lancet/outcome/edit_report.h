// What came of an edit: everything that was done and measured, of which report.json is made.
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
#include "lancet/job/job_config.h"
#include "lancet/journal/journal.h"
#include "lancet/outcome/batch_report.h"
#include "lancet/outcome/edit_verdicts.h"
#include "lancet/outcome/statistics_report.h"
#include "lancet/pages/report_page.h"

namespace lancet {

/// What bringing an edited weight back into a quantised format cost.
struct RequantisedWeight {
  std::string name;
  double edit_lost = 0;  ///< ||E K|| / ||D K||: E what was lost, D the edit, K the keys of all requests so far
  /// Root of tr(E C E^T) / tr(W C W^T): C the keys' second moments, W the edited weight. nullopt: no statistics.
  std::optional<double> text_error = {};
};

/// A batch of the output's journal, perhaps of an earlier job.
struct JournalBatch {
  std::string when = {};
  std::string method = {};
  size_t edits = 0;
};

/// What a run did and measured; report.json is made of it.
struct EditReport {
  std::vector<EditRequest> requests;
  std::string request_format;  ///< format of their file; empty: they stand in the job
  SkippedRecords skipped;
  std::vector<std::string> at_odds;  ///< facts that are there twice, or contradict each other or those that stand
  std::vector<std::string> contexts;
  EditOutcome outcome;
  std::vector<ChosenOption> chosen;  ///< options chosen by statistics, then the outcome's
  std::vector<BatchReport> batches;  ///< batches in the order in which they were edited
  std::string stopped;               ///< why the stream ended before its last batch; empty: it did not
  int64_t resumed_batches = 0;       ///< the first ones, which an interrupted run had finished
  int64_t earlier_edits = 0;         ///< edits by the jobs that continue_from goes on from
  Evaluation before;
  Evaluation after;
  StandingMeasure standing;                                    ///< measure of `evaluate.standing`
  std::vector<std::pair<std::string, RoundingLoss>> rounding;  ///< losses per edited weight, by name
  std::vector<RequantisedWeight> requantised;                  ///< weights of `output.format: quantised`
  std::string output_format;                                   ///< "checkpoint"
  std::string measured_on;                                     ///< what the weights were when they were measured
  StatisticsReport statistics;
  std::string base_hash;
  std::string model_dtype;         ///< weights and activations of the run
  std::string devices;             ///< devices of every rank
  std::vector<Verdict> verdicts;   ///< verdicts by request
  std::vector<std::string> unmet;  ///< accept: thresholds that were missed; empty: none was
  std::vector<StageCost> stages;   ///< costs in order; the slowest rank's seconds are not looked for: root's
  int64_t ranks = 1;
  std::vector<JournalBatch> journal = {};  ///< batches that stand; empty: no history was kept
  std::vector<UndoEntry> undone = {};      ///< undos in the journal

  /// Each batch's requests right after it, all batches together; empty where one was not measured.
  Tallies right_after() const;
};

/// report.json. Schema: docs/report.md.
std::string to_json(const EditReport& report, const JobConfig& job);

// A report as files: the JSON, the resolved job, and what people read.

inline constexpr OutputKind kEditOutput{"edit", "report.json", "lancet-report-"};

/// Returns the run as `lancet report` finds it in the folder later.
RunDocument run_document(const EditReport& report, const JobConfig& job, std::string label);

/// report.json, job.yaml, report.html, metrics.csv, requests.csv. Throws: CheckpointError when the disk refuses.
void write_report_files(const RunDocument& run, const std::filesystem::path& folder);

/// comparison.html.
void write_comparison(std::span<const RunDocument> runs, const std::string& title, const std::filesystem::path& folder);

}  // namespace lancet
