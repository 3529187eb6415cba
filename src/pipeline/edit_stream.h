// The batches of one edit, one after another, with what is measured and kept between them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/stopwatch.h"
#include "stream_start.h"

namespace lancet {

/// The history of a stream that ran; how well its edits hold is not in it yet.
struct StreamRecord {
  EditRecorder recorder;
  std::vector<WeightChanges> finish = {};  ///< what the method did after the last batch
  std::vector<WeightHash> weights = {};    ///< hashes of the weights without that
  bool last_is_new = true;                 ///< the last batch is this run's: it has no report of its own
};

/// What the batches of a stream made.
struct StreamResult {
  std::vector<BatchReport> batches = {};                            ///< reports, in the order in which they were edited
  int64_t resumed_batches = 0;                                      ///< the first ones, which were there
  std::vector<std::pair<std::string, RoundingLoss>> rounding = {};  ///< losses per edited weight, by name
  std::optional<StreamRecord> record = {};                          ///< root's, where a history is kept
};

/// The stream's history with how well the report's requests hold, and earlier ones where they were measured again.
EditHistory measured_history(StreamRecord record, const EditReport& report);

/// The last batch with its own metrics, taken from those of all requests of the report.
BatchReport measured_last_batch(const EditReport& report);

/// "batch 2/3  4 requests  1.2 s  efficacy_prob 100 %; first batch: ...".
std::string batch_line(const std::vector<BatchReport>& batches, size_t n_batches, std::span<const MetricRow> metrics);

class EditStream {
 public:
  /// `store`: where root keeps what is finished; null: nowhere, and on other ranks.
  EditStream(StreamParts parts, StreamStart start, ProgressStore* store, Stopwatch& stopwatch);

  /// Returns the list in which the editor's context notes systems; null where no history is kept.
  std::vector<SolvedSystem>* systems() { return recorder_ ? &recorder_->systems() : nullptr; }

  /// Collective: the batches that are left, and what the method does after the last. The model then has the weights
  /// rounded as they are stored. Once.
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
  std::optional<EditRecorder> recorder_;   ///< root's, where a history is kept
  std::optional<RecordedBatch> recorded_;  ///< the batch that was edited last, until it is in the history
  ProgressStore* store_;
  int64_t n_interrupted_;  ///< StreamStart::n_interrupted
};

}  // namespace lancet
