// Writes down what a stream of edits does: one entry of the history for each batch. On root.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lancet/edit/editor.h"
#include "lancet/edits/edit_history.h"
#include "lancet/models/model_files.h"
#include "lancet/run/batch_report.h"

namespace lancet {

/// What every batch of a stream was edited with.
struct RecordedSetting {
  std::function<JournalBase()> base;  ///< of a history that begins here
  EditSetting setting;                ///< of the batches that are added
};

/// Of a model's files, but for the weights' hash.
JournalBase journal_base(const ModelFiles& files, std::string weights_hash);

class EditRecorder {
 public:
  /// `files` and `editor` outlive this.
  EditRecorder(const ModelFiles& files, const Editor& editor, RecordedSetting setting);

  void go_on_from(EditHistory earlier) { history_ = std::move(earlier); }
  EditHistory& history();
  EditHistory take_history() { return std::move(history()); }

  /// Where the editor's systems are noted (EditContext).
  std::vector<SolvedSystem>& systems() { return systems_; }

  /// In front of a batch.
  void begin(const EditorState& state, const WeightTransaction& transaction);
  /// Behind it, before anything else changes the transaction.
  void end(std::span<const EditRequest> requests, const EditOutcome& outcome, const EditorState& state,
           const WeightTransaction& transaction);
  /// With what was measured behind it: the batch joins the history.
  void close(const BatchReport& report);
  /// What was measured behind the last batch since, while nothing came behind it.
  void report_last(const BatchReport& report);

  /// What the method does behind the last batch lies between the two; it joins the history by the third.
  void begin_finish(const WeightTransaction& transaction) { count(transaction); }
  void end_finish(const WeightTransaction& transaction) { finish_ = changes_behind(transaction); }
  std::vector<WeightChanges> take_finish() { return std::move(finish_); }
  void close_finish() { history().set_finish(std::move(finish_), files_.config); }

  /// Of the transaction's weights, as journals have them.
  std::vector<WeightHash> hashes_of(const WeightTransaction& transaction) const;

  /// How well the history's edits hold.
  void note_measured(const std::string& on, const std::vector<WeightHash>& weights,
                     const std::map<std::string, MeasuredEdit>& edits) {
    history().journal().add_measure(on, weights, edits);
  }

 private:
  std::vector<EditRecord> records_of(std::span<const EditRequest> requests) const;
  std::vector<WeightChanges> changes_behind(const WeightTransaction& transaction) const;
  size_t count_before(WeightId id) const;
  void count(const WeightTransaction& transaction);

  const ModelFiles& files_;
  const Editor& editor_;
  RecordedSetting setting_;
  std::optional<EditHistory> history_;  ///< nullopt: none yet
  std::vector<SolvedSystem> systems_;
  EditorState state_before_;
  std::map<WeightId, size_t> counts_before_;  ///< of each weight's changes
  BatchEntry entry_;                          ///< ended, not closed
  EditedBatch batch_;
  std::vector<WeightChanges> finish_;
};

}  // namespace lancet
