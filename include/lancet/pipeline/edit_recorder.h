// Writes down what a stream of edits does: one entry of the history for each batch. On root.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/editing/editor.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/models/model_files.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

/// What every batch of a stream was edited with.
struct RecordedSetting {
  std::function<JournalBase()> base;  ///< base of a history that begins here
  EditSetting setting;                ///< setting of the batches that are added
};

/// Makes the base of a model's files, but for the weights' hash.
JournalBase journal_base(const ModelFiles& files, std::string weights_hash);

/// How many changes each weight of a transaction had at some time.
using ChangeCounts = std::map<WeightId, size_t>;
ChangeCounts count_changes(const WeightTransaction& transaction);
/// What weights got since then, on the host.
std::vector<WeightChanges> changes_since(const ChangeCounts& before, const WeightTransaction& transaction);

/// What there was before a batch that is being edited.
struct BatchStart {
  EditorState state;
  ChangeCounts counts;
};

/// A batch that was edited and is not in the history yet.
struct RecordedBatch {
  BatchEntry entry;
  EditedBatch batch;
};

/// A batch goes from begin() by end() to add(); each takes what the one before it gave.
class EditRecorder {
 public:
  /// `files` and `editor` outlive this.
  EditRecorder(const ModelFiles& files, const Editor& editor, RecordedSetting setting);

  void go_on_from(EditHistory earlier) { history_ = std::move(earlier); }
  EditHistory& history();
  EditHistory take_history() { return std::move(history()); }

  /// Returns the list in which the editor's systems are noted (EditContext).
  std::vector<SolvedSystem>& systems() { return systems_; }

  /// Notes what there is before a batch; systems() is empty then.
  BatchStart begin(const EditorState& state, const WeightTransaction& transaction);
  /// Takes what the batch did, before anything else changes the transaction.
  RecordedBatch end(const BatchStart& start, std::span<const EditRequest> requests, const EditOutcome& outcome,
                    const EditorState& state, const WeightTransaction& transaction);
  /// Puts the batch into the history, with what was measured after it.
  void add(RecordedBatch batch, const BatchReport& report);
  /// Exchanges what was measured after the last batch, while no other came after it.
  void report_last(const BatchReport& report);
  /// Puts what the method did after the last batch into the history.
  void set_finish(std::vector<WeightChanges> changes) { history().set_finish(std::move(changes), files_.config); }

  /// Returns hashes of the transaction's weights, as journals have them.
  std::vector<WeightHash> hashes_of(const WeightTransaction& transaction) const;

  /// How well the history's edits hold.
  void note_measured(const std::string& on, const std::vector<WeightHash>& weights,
                     const std::map<std::string, MeasuredEdit>& edits) {
    history().journal().add_measure(on, weights, edits);
  }

 private:
  std::vector<EditRecord> records_of(std::span<const EditRequest> requests) const;

  const ModelFiles& files_;
  const Editor& editor_;
  RecordedSetting setting_;
  std::optional<EditHistory> history_;  ///< nullopt: none yet
  std::vector<SolvedSystem> systems_;
};

// Where a job of several batches stands, kept beside its output so that a killed one goes on after the last batch. It
// is found again only by all that this depends on.

struct EditProgress {
  std::vector<BatchReport> batches;  ///< the finished ones
  EditHistory history;               ///< them, after those of earlier jobs
};

/// Returns the progress in a history whose first `n_earlier` batches are those of earlier jobs, the others this job's.
/// Batches that have no report get an empty one. Throws: as from_record().
EditProgress progress_of(EditHistory history, size_t n_earlier = 0);

class ProgressStore {
 public:
  /// `unfinished`: the folder of what the run has finished; `config` outlives this. `setting_key`: of all that a
  /// batch's result depends on besides the requests so far.
  ProgressStore(std::filesystem::path unfinished, const ModelConfig& config, std::string setting_key)
      : unfinished_(std::move(unfinished)),
        folder_(unfinished_ / kProgressFolder),
        config_(config),
        setting_key_(std::move(setting_key)) {}

  /// Takes the place of what was saved before, at once. Throws: CheckpointError when the disk refuses.
  void save(const EditProgress& progress, std::span<const EditRequest> requests);

  /// What a job that begins with the same batches of `requests` had finished; nullopt when there is none. What is
  /// damaged, or another job's, is named in a warning.
  std::optional<EditProgress> load(const std::vector<std::vector<int64_t>>& batches,
                                   std::span<const EditRequest> requests);

 private:
  EditProgress read(const std::vector<std::vector<int64_t>>& batches, std::span<const EditRequest> requests) const;
  std::string key(const std::vector<std::vector<int64_t>>& batches, std::span<const EditRequest> requests) const;

  std::filesystem::path unfinished_;
  std::filesystem::path folder_;  // in it
  const ModelConfig& config_;
  std::string setting_key_;
  bool is_sound_ = false;  ///< what is saved was read or written by this: only then its files are linked to
};

}  // namespace lancet
