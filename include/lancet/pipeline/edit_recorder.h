// Records what a stream of edits does: one history entry per batch. It runs on root.
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

/// The setting with which every batch of a stream is edited.
struct RecordedSetting {
  std::function<JournalBase()> base;  ///< makes the base of a history that starts here
  EditSetting setting;                ///< setting of the recorded batches
};

/// Makes the base of a history from a model's files and the given hash of its weights.
JournalBase journal_base(const ModelFiles& files, std::string weights_hash);

/// The number of changes of each weight of a transaction at some point in time.
using ChangeCounts = std::map<WeightId, size_t>;
ChangeCounts count_changes(const WeightTransaction& transaction);
/// Returns the changes of the weights since then, on the host.
std::vector<WeightChanges> changes_since(const ChangeCounts& before, const WeightTransaction& transaction);

/// The state before a batch that is being edited.
struct BatchStart {
  EditorState state;
  ChangeCounts counts;
};

/// A batch that was edited but is not in the history yet.
struct RecordedBatch {
  BatchEntry entry;
  EditedBatch batch;
};

/// Records batches. For each batch call begin(), end() and add(); each call takes the result of the one before.
class EditRecorder {
 public:
  /// `files` and `editor` must outlive this.
  EditRecorder(const ModelFiles& files, const Editor& editor, RecordedSetting setting);

  void go_on_from(EditHistory earlier) { history_ = std::move(earlier); }
  EditHistory& history();
  EditHistory take_history() { return std::move(history()); }

  /// Returns the list to which the editor appends the systems that it solves (EditContext).
  std::vector<SolvedSystem>& systems() { return systems_; }

  /// Records the state before a batch; systems() is empty then.
  BatchStart begin(const EditorState& state, const WeightTransaction& transaction);
  /// Records what the batch did. Call it before anything else changes the transaction.
  RecordedBatch end(const BatchStart& start, std::span<const EditRequest> requests, const EditOutcome& outcome,
                    const EditorState& state, const WeightTransaction& transaction);
  /// Adds the batch to the history, with what was measured after it.
  void add(RecordedBatch batch, const BatchReport& report);
  /// Replaces what was measured after the last batch, as long as no other batch has followed.
  void report_last(const BatchReport& report);
  /// Adds to the history what the method did after the last batch.
  void set_finish(std::vector<WeightChanges> changes) { history().set_finish(std::move(changes), files_.config); }

  /// Returns hashes of the transaction's weights in the form that journals use.
  std::vector<WeightHash> hashes_of(const WeightTransaction& transaction) const;

  /// Records how well the edits of the history hold.
  void note_measured(const std::string& on, const std::vector<WeightHash>& weights,
                     const std::map<std::string, MeasuredEdit>& edits) {
    history().journal().add_measure(on, weights, edits);
  }

 private:
  std::vector<EditRecord> records_of(std::span<const EditRequest> requests) const;

  const ModelFiles& files_;
  const Editor& editor_;
  RecordedSetting setting_;
  std::optional<EditHistory> history_;  ///< nullopt: no history yet
  std::vector<SolvedSystem> systems_;
};

// The progress of a job of several batches, saved beside its output so that a killed job resumes after its last batch.
// It is used again only if everything that it depends on is the same.

struct EditProgress {
  std::vector<BatchReport> batches;  ///< the finished batches
  EditHistory history;               ///< these batches, preceded by those of earlier jobs
};

/// Returns the progress that a history holds. Its first `n_earlier` batches are those of earlier jobs, the others
/// belong to this job. Batches without a report get an empty one. Throws: as from_record().
EditProgress progress_of(EditHistory history, size_t n_earlier = 0);

class ProgressStore {
 public:
  /// `unfinished`: the folder for the run's finished work; `config` must outlive this. `setting_key`: a key of
  /// everything that a batch's result depends on, except the requests so far.
  ProgressStore(std::filesystem::path unfinished, const ModelConfig& config, std::string setting_key)
      : unfinished_(std::move(unfinished)),
        folder_(unfinished_ / kProgressFolder),
        config_(config),
        setting_key_(std::move(setting_key)) {}

  /// Replaces what was saved before, atomically. Throws: CheckpointError when the disk refuses.
  void save(const EditProgress& progress, std::span<const EditRequest> requests);

  /// Returns what an earlier run finished of a job that begins with the same batches of `requests`; nullopt when there
  /// is nothing. If the saved files are damaged or belong to another job, a warning names them.
  std::optional<EditProgress> load(const std::vector<std::vector<int64_t>>& batches,
                                   std::span<const EditRequest> requests);

 private:
  EditProgress read(const std::vector<std::vector<int64_t>>& batches, std::span<const EditRequest> requests) const;
  std::string key(const std::vector<std::vector<int64_t>>& batches, std::span<const EditRequest> requests) const;

  std::filesystem::path unfinished_;
  std::filesystem::path folder_;  // in it
  const ModelConfig& config_;
  std::string setting_key_;
  /// Whether this object read or wrote the saved files; only then may new files be hard links to them.
  bool is_sound_ = false;
};

}  // namespace lancet
