// Edits batches one after another, and measures and saves between them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/stopwatch.h"
#include "stream_start.h"

namespace lancet {

/// The history of a finished stream, without how well its edits hold.
struct StreamRecord {
  EditRecorder recorder;
  std::vector<WeightChanges> finish = {};  ///< the changes that the method made after the last batch
  std::vector<WeightHash> weights = {};    ///< hashes of the weights before those changes
  bool last_is_new = true;                 ///< this run edited the last batch, which has no report of its own yet
};

/// The result of a stream.
struct StreamResult {
  std::vector<BatchReport> batches = {};  ///< reports, in the order of editing
  int64_t resumed_batches = 0;            ///< number of first batches that an earlier run had finished
  std::vector<std::pair<std::string, RoundingLoss>> rounding = {};  ///< losses per edited weight, by name
  std::optional<StreamRecord> record = {};                          ///< on root, if a history is kept
};

/// Returns the stream's history with how well the requests of the report hold, and earlier requests if they were
/// measured again.
EditHistory measured_history(StreamRecord record, const EditReport& report);

/// Returns the report of the last batch, with its own metrics taken from those of all requests.
BatchReport measured_last_batch(const EditReport& report);

/// Returns for example "batch 2/3  4 requests  1.2 s  efficacy_prob 100 %; first batch: ...".
std::string batch_line(const std::vector<BatchReport>& batches, size_t n_batches, std::span<const MetricRow> metrics);

class EditStream {
 public:
  /// `store`: where root saves finished batches; null on other ranks, or if nothing is saved.
  EditStream(StreamParts parts, StreamStart start, ProgressStore* store, Stopwatch& stopwatch);

  /// Returns the list to which the editor's context adds solved systems; null if no history is kept.
  std::vector<SolvedSystem>* systems() { return recorder_ ? &recorder_->systems() : nullptr; }

  /// Collective. Edits the remaining batches, and then lets the method finish. Afterwards the model has the weights as
  /// rounded for storage. Call it only once.
  StreamResult run(const EditContext& context);

 private:
  void edit_batch(const EditContext& context, const std::vector<int64_t>& batch);
  void measure(const EditContext& context);
  bool has_drifted() const;
  std::string drift_line() const;
  std::vector<RoundingLoss> write(const EditContext& context);
  void save();
  void show_chosen() const;

  const StreamParts parts_;
  Stopwatch& stopwatch_;
  StreamResult result_;
  EditorState state_;
  std::optional<EditRecorder> recorder_;   ///< on root, if a history is kept
  std::optional<RecordedBatch> recorded_;  ///< the batch that was edited last, until it is added to the history
  ProgressStore* store_;
  int64_t n_interrupted_;  ///< StreamStart::n_interrupted
};

}  // namespace lancet
